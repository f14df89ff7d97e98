"""The tokenizers of both languages."""

from dataclasses import dataclass

from tfformer.data.imported_tokenizers import AnyTokenizer
from tfformer.data.tokenizers import Tokenizer
from tfformer.special_ids import PLACEHOLDER


@dataclass(frozen=True)
class Tokenizers:
    """Source and target tokenizer; the same object if the vocabulary is shared."""

    source: AnyTokenizer
    target: AnyTokenizer

    @property
    def shared(self) -> bool:
        """Whether both languages have one vocabulary."""
        return self.source is self.target

    @property
    def languages(self) -> list[str] | None:
        """The names of the two languages of a multilingual model; None for other models."""
        names = [tokenizer.language for tokenizer in (self.source, self.target)]
        languages = [name for name in names if name is not None]
        return languages if len(languages) == len(names) else None

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The symbols of both vocabularies that stand for words, such as "⟦1⟧"."""
        target = set(self.target.symbols)
        return tuple(
            symbol
            for symbol in self.source.symbols
            if symbol in target and PLACEHOLDER.fullmatch(symbol)
        )

    def with_languages(self, source: str | None, target: str | None) -> "Tokenizers":
        """Return the tokenizers for other languages of a multilingual model; None keeps one."""
        if source is None and target is None:
            return self
        return Tokenizers(_with_language(self.source, source), _with_language(self.target, target))

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each side's model."""
        return {"source": self.source.digest, "target": self.target.digest}


def _with_language(tokenizer: AnyTokenizer, language: str | None) -> AnyTokenizer:
    if language is None:
        return tokenizer
    if isinstance(tokenizer, Tokenizer) or not tokenizer.languages:
        raise ValueError(
            f"the run translates between two fixed languages, so {language[:40]!r} cannot be "
            "chosen; leave out --languages, or import a multilingual model"
        )
    return tokenizer.with_language(language)
