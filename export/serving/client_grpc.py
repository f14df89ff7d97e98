"""Translate standard input, a sentence a line, with TensorFlow Serving over gRPC.

pip install grpcio protobuf
python client_grpc.py 127.0.0.1:8500 phrasebook < sentences.en > sentences.de
"""

import argparse
import sys

try:
    import grpc
except ImportError:
    sys.exit("client_grpc.py: grpc is missing; pip install grpcio protobuf")
from client_rest import BusyError, RequestError, Translations, parser, translate_input
from messages import PREDICT, PredictRequest, PredictResponse, first_column, text_request

BUSY = grpc.StatusCode.UNAVAILABLE  # no server, or a full queue: the same request may succeed later
CHANNEL = [
    ("grpc.max_reconnect_backoff_ms", 1000)
]  # to be there soon after a server that comes back


def main() -> int:
    """Translate standard input; return the exit code."""
    options = parser(__doc__, server="the server's address, HOST:PORT").parse_args()
    with grpc.insecure_channel(options.server, CHANNEL) as channel:
        call = channel.unary_unary(
            PREDICT,
            request_serializer=PredictRequest.SerializeToString,
            response_deserializer=PredictResponse.FromString,
        )
        return translate_input(
            options, lambda sentences, seconds: predict(call, options, sentences, seconds)
        )


def predict(
    call: grpc.UnaryUnaryMultiCallable,
    options: argparse.Namespace,
    sentences: list[str],
    seconds: float,
) -> Translations:
    """Send one request.

    Return the translations of its sentences with their scores.

    Raises:
        BusyError: The server cannot answer now.
        RequestError: The server will not answer this.
    """
    signature = "translate_beam" if options.beam else "serving_default"
    request = text_request(options.model, signature, sentences, options.version, options.label)
    try:
        response = call(request, timeout=seconds)
    except grpc.RpcError as error:
        kind = BusyError if error.code() == BUSY else RequestError
        raise kind(f"{options.server} answered {error.code().name}: {error.details()}") from None
    names = ("translations", "scores") if options.beam else ("translation", "score")
    try:
        texts, scores = (first_column(response, name) for name in names)
        pairs = list(zip(texts, scores, strict=True))
    except (KeyError, ValueError) as error:
        message = f"{options.server} answered with something else than translations ({error})"
        raise RequestError(message) from None
    if len(pairs) != len(sentences):
        raise RequestError(f"{options.server} answered {len(pairs)} of {len(sentences)} sentences")
    return [(text.decode("utf-8", "replace"), score) for text, score in pairs]


if __name__ == "__main__":
    sys.exit(main())
