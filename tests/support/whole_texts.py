"""Translate whole texts with functions in place of a model."""

from collections.abc import Callable
from typing import Any

from tfformer.text import TextTranslator


def shout(sentences: list[str]) -> list[str]:
    """Write sentences in capitals."""
    return [sentence.upper() for sentence in sentences]


def heard_and_said(
    text: str, answer: str, format: str = "text", **settings: Any
) -> tuple[list[str], str]:
    """Return what a model gets that always gives this answer, and the final translation."""
    read: list[str] = []

    def translate(sentences: list[str]) -> list[str]:
        read.extend(sentences)
        return [answer] * len(sentences)

    return read, translate_text(text, translate, format, **settings)


def translate_text(
    text: str, translate: Callable[[list[str]], list[str]], format: str = "text", **settings: Any
) -> str:
    """Translate a whole text; the settings are arguments of `TextTranslator`."""
    return TextTranslator(translate, **settings).translate(text, format)


def heard(text: str, format: str) -> list[str]:
    """Return the sentences of a text that the model gets."""
    sentences: list[str] = []
    translate_text(text, lambda batch: sentences.extend(batch) or batch, format)
    return sentences
