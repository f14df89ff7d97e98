"""Translate standard input, a sentence a line, with TensorFlow Serving over gRPC.

pip install tensorflow-serving-api
python client_grpc.py 127.0.0.1:8500 phrasebook < sentences.en > sentences.de
"""

import argparse
import sys

import grpc
import tensorflow as tf
from client_rest import Busy, Refused, Translations, parser, translate_input
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

BUSY = grpc.StatusCode.UNAVAILABLE  # no server, or a full queue: the same request may succeed later
CHANNEL = [
    ("grpc.max_reconnect_backoff_ms", 1000)
]  # to be there soon after a server that comes back


def main() -> int:
    options = parser(__doc__, server="the server's address, HOST:PORT").parse_args()
    with grpc.insecure_channel(options.server, CHANNEL) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        return translate_input(
            options, lambda sentences, seconds: predict(stub, options, sentences, seconds)
        )


def predict(
    stub, options: argparse.Namespace, sentences: list[str], seconds: float
) -> Translations:
    """One request, and what its answer means."""
    try:
        outputs = stub.Predict(request(options, sentences), timeout=seconds).outputs
    except grpc.RpcError as error:
        kind = Busy if error.code() == BUSY else Refused
        raise kind(f"{options.server} answered {error.code().name}: {error.details()}") from None
    names = ("translations", "scores") if options.beam else ("translation", "score")
    texts, scores = (tf.make_ndarray(outputs[name]) for name in names)
    if options.beam:
        texts, scores = texts[:, 0], scores[:, 0]
    return [
        (text.decode("utf-8", "replace"), float(score))
        for text, score in zip(texts, scores, strict=True)
    ]


def request(options: argparse.Namespace, sentences: list[str]) -> predict_pb2.PredictRequest:
    made = predict_pb2.PredictRequest()
    made.model_spec.name = options.model
    made.model_spec.signature_name = "translate_beam" if options.beam else "serving_default"
    if options.version is not None:
        made.model_spec.version.value = options.version
    if options.label is not None:
        made.model_spec.version_label = options.label
    made.inputs["text"].CopyFrom(tf.make_tensor_proto(sentences, tf.string))
    return made


if __name__ == "__main__":
    sys.exit(main())
