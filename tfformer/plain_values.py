"""YAML and JSON to plain values within bounds, as files may be damaged or hostile.

Nothing but ValueError and OSError ever comes out, in less than a second, whatever goes in.
"""

from __future__ import annotations

import json
import re
import reprlib
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 65_536  # thirty times the package's largest recipe; PyYAML reads it in a second
MAX_DEPTH = 20  # collections within collections; a recipe has three
MAX_NODES = 10_000  # values, an alias counted as all that it stands for
MAX_SHOWN = 120  # characters of a value, or of a parser's complaint, in a message
NO_TEXT = re.compile("[\\0\\ud800-\\udfff]")  # NUL, and each half of a surrogate pair

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 3
_SHORT.maxstring = _SHORT.maxother = MAX_SHOWN - 20
_SHORT.maxlong = 40


def read_text(path: Path) -> str:
    """Read a small UTF-8 file.

    Args:
        path: A regular file of up to `MAX_BYTES` bytes.

    Returns:
        Its text.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no regular file, too large or not UTF-8.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path} is not a regular file; give a file")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES:,} bytes; give the right file")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 at byte {error.start + 1}; save it as UTF-8 text"
        ) from None


def parse_yaml(text: str, place: str) -> object:
    """Parse one YAML document into dictionaries, lists, texts, numbers and such.

    Args:
        text: The document.
        place: Its file or option, for messages.

    Returns:
        The value; None for an empty document.

    Raises:
        ValueError: The text is no YAML, has tags that do not fit their values, exceeds a bound, or
            holds NUL or half a surrogate pair.

    Example:
        >>> parse_yaml("model: {preset: tiny}", "recipe.yaml")
        {'model': {'preset': 'tiny'}}
        >>> parse_yaml("!!int ''", "recipe.yaml")
        Traceback (most recent call last):
            ...
        ValueError: recipe.yaml is not YAML: string index out of range
    """
    import yaml

    if len(text) > MAX_BYTES:
        raise ValueError(f"{place} has more than {MAX_BYTES:,} characters; give the right value")
    try:
        _check_bounds(yaml.parse(text, Loader=yaml.SafeLoader), place)
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{place} is not YAML: {_first_words(error)}") from None
    except _RefusedError:
        raise
    except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:
        # PyYAML's constructors of !!int, !!bool, !!timestamp and such trust their tags
        raise ValueError(f"{place} is not YAML: {_first_words(error)}") from None


def parse_json(text: str) -> object:
    """Parse JSON.

    Args:
        text: The document.

    Returns:
        The value.

    Raises:
        ValueError: The text is no JSON, or nested too deeply.

    Example:
        >>> parse_json("[1, 2]")
        [1, 2]
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("collections are nested too deeply") from None


def shown(value: object) -> str:
    """The value as Python writes it, cut to fit into a message.

    Example:
        >>> shown("a" * 1000)[:20], len(shown("a" * 1000)) <= MAX_SHOWN
        ("'aaaaaaaaaaaaaaaaaaa", True)
        >>> shown(16**60_000)
        'a number of 240,001 bits'
    """
    if isinstance(value, int) and value.bit_length() > 10_000:
        return f"a number of {value.bit_length():,} bits"
    try:
        text = _SHORT.repr(value)
    except ValueError:  # such a number within a collection
        text = f"a {type(value).__name__}"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


class _RefusedError(ValueError):
    """The document is nested too deeply, has too many values or characters of no text."""


def _check_bounds(events: Iterable[yaml.Event], place: str) -> None:
    """Raise ValueError beyond MAX_DEPTH or MAX_NODES, before anything is built."""
    import yaml

    nodes = 0
    sizes: dict[str, int] = {}  # of each anchor that is complete
    opened: list[_Collection] = []
    for event in events:
        if isinstance(event, yaml.NodeEvent) and opened:
            opened[-1].add(event, place)
        if isinstance(event, yaml.AliasEvent):
            nodes += sizes.get(event.anchor, MAX_NODES)  # of one within itself there is no end
        elif isinstance(event, yaml.CollectionStartEvent):
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            opened.append(_Collection(event.anchor, nodes, is_mapping))
            nodes += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            done = opened.pop()
            sizes[done.anchor or ""] = nodes - done.before
        elif isinstance(event, yaml.ScalarEvent):
            _check_unicode(event.value, place)
            sizes[event.anchor or ""] = 1
            nodes += 1
        if len(opened) > MAX_DEPTH:
            raise _RefusedError(f"{place} is nested more than {MAX_DEPTH} deep; flatten it")
        if nodes > MAX_NODES:
            raise _RefusedError(f"{place} has more than {MAX_NODES:,} values; shorten it")


@dataclass
class _Collection:
    """A list or a mapping whose end has not been read yet."""

    anchor: str | None
    before: int  # nodes before it
    is_mapping: bool
    children: int = 0
    keys: set[str] = field(default_factory=set)

    def add(self, event: yaml.NodeEvent, place: str) -> None:
        """Count a child; refuse a key that was there before.

        YAML would keep the last one.
        """
        value = getattr(event, "value", None)  # of a scalar
        if self.is_mapping and self.children % 2 == 0 and value is not None:
            if value in self.keys:
                raise _RefusedError(f"{place} has {shown(value)} twice; keep one of them")
            self.keys.add(value)
        self.children += 1


def _check_unicode(value: str, place: str) -> None:
    r"""Raise ValueError for NUL or half a surrogate pair.

    YAML writes them as "\0" and "\ud800". No text has them, and no file's name.
    """
    if NO_TEXT.search(value):
        raise _RefusedError(
            f"{place}: {shown(value)} holds a character that no text has; leave it out"
        )


def _first_words(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 2 * MAX_SHOWN else f"{text[: 2 * MAX_SHOWN]}..."
