"""A byte-pair tokenizer (Sennrich et al. 2016) in the format of the library `tokenizers`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfformer.data.tokenizers import Tokenizer, before_end, checked_ids, checked_texts
from tfformer.special_ids import END_ID

if TYPE_CHECKING:
    import tensorflow as tf


class BytePairTokenizer(Tokenizer):
    """A tokenizer of the library `tokenizers`, such as that of an imported BART.

    It splits text only in Python, because TensorFlow has no operation for its rules.

    Args:
        model: The bytes of a tokenizer.json whose ids 0 to 3 are padding, unknown, start and end. A
            post-processor may begin every text with one token.

    Attributes:
        prefix_id: The id of that token; None if there is no such token.
    """

    is_cut_by_fast_operation = False
    symbols = ()

    def __init__(self, model: bytes) -> None:
        import tokenizers

        self.model = model
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(model.decode())
        except Exception as error:  # the library raises no class of its own
            raise ValueError(f"not a vocabulary of `tokenizers` ({error}); copy it again") from None
        self._tokenizer.encode_special_tokens = True  # "</s>" in a text is text
        begin = self._tokenizer.encode("").ids
        self.prefix_id = begin[0] if begin else None

    @property
    def vocab_size(self) -> int:
        """Number of pieces."""
        return self._tokenizer.get_vocab_size()

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of B sentences, as `Tokenizer.encode` does."""
        texts = [text.decode() for text in checked_texts(sentences)]
        rows = self._tokenizer.encode_batch(texts)
        return [row.ids if text.strip() else [] for row, text in zip(rows, texts, strict=True)]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the texts of B rows of ids, as `Tokenizer.decode` does."""
        silent = (*range(END_ID + 1), self.prefix_id)
        rows = [before_end(checked_ids(row, self.vocab_size)) for row in ids]
        kept = [[number for number in row if number not in silent] for row in rows]
        return self._tokenizer.decode_batch(kept, skip_special_tokens=False)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the piece of each id, including special ids."""
        return [str(self._tokenizer.id_to_token(i)) for i in checked_ids(ids, self.vocab_size)]

    def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Raise ValueError: TensorFlow has no such operation."""
        raise ValueError(
            "a byte-pair vocabulary cannot split text in a TensorFlow graph; leave out the text "
            "signatures (with_text=False) and tokenize outside the model"
        )


def is_byte_pair_file(path: Path) -> bool:
    """Return whether a vocabulary is JSON rather than a SentencePiece model."""
    return path.is_file() and path.read_bytes()[:1] == b"{"
