"""SentencePiece's model file, declared with the fields that are read or changed here.

SentencePiece has a Python module for it, which requires a newer protobuf than TensorFlow 2.19
allows. Fields that are not declared are preserved.

Source: `src/sentencepiece_model.proto` of SentencePiece.
"""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

NORMAL, USER_DEFINED = 1, 4  # types of pieces
UNIGRAM, BPE = 1, 2  # types of models

_FILE = """
name: "tfformer/sentencepiece_model.proto"
message_type {
  name: "SentencePiece"
  field { number: 1 name: "piece" type: TYPE_STRING }
  field { number: 2 name: "score" type: TYPE_FLOAT }
  field { number: 3 name: "type" type: TYPE_INT32 default_value: "1" }
}
message_type {
  name: "TrainerSpec"
  field { number: 3 name: "model_type" type: TYPE_INT32 default_value: "1" }
  field { number: 4 name: "vocab_size" type: TYPE_INT32 }
  field { number: 24 name: "treat_whitespace_as_suffix" type: TYPE_BOOL }
  field { number: 35 name: "byte_fallback" type: TYPE_BOOL }
}
message_type {
  name: "NormalizerSpec"
  field { number: 1 name: "name" type: TYPE_STRING }
  field { number: 2 name: "precompiled_charsmap" type: TYPE_BYTES }
  field { number: 3 name: "add_dummy_prefix" type: TYPE_BOOL default_value: "true" }
}
message_type {
  name: "ModelProto"
  field { number: 1 name: "pieces" type_name: "SentencePiece" label: LABEL_REPEATED }
  field { number: 2 name: "trainer_spec" type_name: "TrainerSpec" }
  field { number: 3 name: "normalizer_spec" type_name: "NormalizerSpec" }
}
"""
_pool = descriptor_pool.DescriptorPool()
_pool.Add(text_format.Parse(_FILE, descriptor_pb2.FileDescriptorProto()))
ModelProto = message_factory.GetMessageClass(_pool.FindMessageTypeByName("ModelProto"))
NormalizerSpec = message_factory.GetMessageClass(_pool.FindMessageTypeByName("NormalizerSpec"))
