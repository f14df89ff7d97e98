"""The normalization "nmt_nfkc_plain": SentencePiece's nmt_nfkc, and plain quotes.

A SentencePiece model contains its rules, so they are the same in Python, in a graph, on a device
and in a browser.
"""

import functools

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

PLAIN_NORMALIZATION = "nmt_nfkc_plain"
PLAIN = {**dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("“”„‟", '"'), "\u00ad": ""}
PLAIN_TABLE = str.maketrans(PLAIN)  # of `str.translate`


def with_plain_rules(model: bytes) -> bytes:
    """Replace the nmt_nfkc rules of a SentencePiece model by nmt_nfkc_plain."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)  # type: ignore[attr-defined]
    proto.normalizer_spec.precompiled_charsmap = _plain_rules()
    proto.normalizer_spec.name = PLAIN_NORMALIZATION
    return bytes(proto.SerializeToString())


@functools.cache
def _plain_rules() -> bytes:
    usual = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc").decompile()
    rules = sorted((dict(usual) | PLAIN).items())
    plain = sentencepiece.SentencePieceNormalizer(norm_map=rules).serialized_normalizer_spec()
    spec = sentencepiece_model_pb2.NormalizerSpec.FromString(plain)  # type: ignore[attr-defined]
    return bytes(spec.precompiled_charsmap)
