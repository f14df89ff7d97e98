"""Translate two sentences with TensorFlow Serving, by REST and by gRPC.

pip install tensorflow-serving-api
python sample.py phrasebook http://localhost:8501 localhost:8500
"""

import json
import sys
from urllib.request import urlopen

import grpc
import tensorflow as tf
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

SENTENCES = ["Good morning.", "The animal is tired."]
SECONDS = 60


def translate_by_rest(address: str, model: str, sentences: list[str]) -> list[str]:
    """Ask for `serving_default`; the answer of `translate_beam` has another form."""
    body = json.dumps({"inputs": {"text": sentences}}).encode()
    url = f"{address}/v1/models/{model}:predict"  # or .../models/NAME/versions/2:predict
    with urlopen(url, body, timeout=SECONDS) as answer:
        return json.load(answer)["outputs"]["translation"]


def translate_by_grpc(address: str, model: str, sentences: list[str]) -> list[str]:
    """Ask for the same signature with TensorFlow Serving's messages."""
    request = PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = "serving_default"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(sentences))
    with grpc.insecure_channel(address) as channel:
        response = PredictionServiceStub(channel).Predict(request, timeout=SECONDS)
    return [text.decode() for text in response.outputs["translation"].string_val]


if __name__ == "__main__":
    model, rest, *rpc = sys.argv[1:]
    print(*translate_by_rest(rest, model, SENTENCES), sep="\n")
    for address in rpc:
        print(*translate_by_grpc(address, model, SENTENCES), sep="\n")
