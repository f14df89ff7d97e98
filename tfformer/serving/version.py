"""One exported version as a server sees it, whatever runs it.

It knows no network.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from tfformer.engines.artifact import Tokenizers
from tfformer.serving.errors import RequestError, check_name

CountTokens = Callable[[Sequence[str]], list[int]]
Encode = Callable[[Sequence[str]], list[list[int]]]
Arrays = dict[str, np.ndarray]  # by the name of an input or output; the first axis is the batch

TEXTS = ("translation", "translations", "generated_text")  # outputs that are texts
NO_MAXIMUM = 2**31  # tokens, of a model that does not say how many it takes


class Version(ABC):
    """One exported version, loaded.

    Args:
        manifest: The export's description of itself; empty for a foreign one.
        tokenizers: Those of the export, if it has any.
        signatures: The inputs and outputs of each signature.

    Attributes:
        manifest: As given.
        signatures: As given.
        count_tokens: Texts in, the tokens of each out, as the model reads them; None without
            tokenizers. The token of the language that a text may begin with counts too.
        placeholders: Symbols that the model has learned to copy.
        max_tokens: Tokens of the longest sentence that the model takes whole, without the end
            token.
    """

    def __init__(
        self,
        manifest: dict[str, Any],
        tokenizers: Tokenizers | None,
        signatures: dict[str, SignatureDef],
    ) -> None:
        self.manifest = manifest
        self.signatures = signatures
        self.count_tokens = _token_counter(tokenizers.source.encode) if tokenizers else None
        self._count_written = _token_counter(tokenizers.target.encode) if tokenizers else None
        self.placeholders = tokenizers.placeholders if tokenizers else ()
        self.max_tokens = _max_tokens(manifest)

    def signature(self, name: str) -> SignatureDef:
        """Return the description of a signature; RequestError if the model lacks it."""
        check_name("signature's", name)
        # One without inputs is an operation that TensorFlow runs after loading.
        signatures = {key: value for key, value in self.signatures.items() if value.inputs}
        if name not in signatures:
            known = ", ".join(sorted(signatures))
            raise RequestError(
                "FAILED_PRECONDITION", f"there is no signature {name!r}; choose one of {known}"
            )
        return signatures[name]

    @abstractmethod
    def run(self, signature: str, inputs: Arrays) -> Arrays:
        """Run a signature on checked inputs.

        All arrays, given and returned, have the batch first.

        Raises:
            RequestError: The model refuses the inputs, or fails.
        """

    def tokens_of(self, outputs: Arrays) -> int:
        """Return the number of tokens of all rows of an answer.

        They are those of the best translation, or of the text that was scored. Of texts it is 0
        where the export has no vocabularies.
        """
        for name in ("lengths", "num_tokens"):
            if name in outputs:
                return int(outputs[name].sum())
        rows = [outputs[name] for name in TEXTS if name in outputs]
        if not rows or self._count_written is None:
            return 0
        best = rows[0].reshape(len(rows[0]), -1)[:, 0]
        return sum(self._count_written([text.decode("utf-8", "replace") for text in best]))


def encoded(encode: Encode, texts: Sequence[str]) -> list[list[int]]:
    """Return the ids of texts.

    Raises:
        RequestError: A text has a code of a language that the model lacks.
    """
    try:
        return encode(list(texts))
    except ValueError as error:
        raise RequestError("INVALID_ARGUMENT", str(error)) from None


def _token_counter(encode: Encode) -> CountTokens:
    return lambda texts: [len(ids) for ids in encoded(encode, texts)]


def _max_tokens(manifest: Mapping[str, Any]) -> int:
    """Tokens of the longest sentence that the model takes whole.

    The end token does not count.
    """
    decoding = manifest.get("decoding")
    return decoding["max_length"] - 1 if isinstance(decoding, dict) else NO_MAXIMUM
