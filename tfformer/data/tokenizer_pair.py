"""The tokenizers of both languages."""

from dataclasses import dataclass

from tfformer.data.piece_tokenizer import AnyTokenizer
from tfformer.special_ids import PLACEHOLDER


@dataclass(frozen=True)
class Tokenizers:
    """Source and target tokenizer: one object where the vocabulary is shared."""

    source: AnyTokenizer
    target: AnyTokenizer

    @property
    def shared(self) -> bool:
        """Whether both languages have one vocabulary."""
        return self.source is self.target

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The symbols of both vocabularies that stand for words, such as "⟦1⟧"."""
        target = set(self.target.symbols)
        return tuple(
            symbol
            for symbol in self.source.symbols
            if symbol in target and PLACEHOLDER.fullmatch(symbol)
        )

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each side's model."""
        return {"source": self.source.digest, "target": self.target.digest}
