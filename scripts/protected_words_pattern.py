#!/usr/bin/env python
"""Write the pattern of protected words for the page in the browser.

Usage: scripts/protected_words_pattern.py > export/on_device/web/src/protected_words.js

The page and the server protect the same words: this script translates the regular expression of
`tfformer.text.protected_words` into JavaScript.
"""

import itertools
import json
import re._constants as sre
from collections.abc import Iterator
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from tfformer.text.protected_words import protected_words

SYNTAX = r"^$\.*+?()[]{}|/"
WORD = r"\p{L}\p{N}_"
SPACE = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
SETS = {sre.CATEGORY_WORD: WORD, sre.CATEGORY_DIGIT: r"\p{Nd}", sre.CATEGORY_SPACE: SPACE}
NOT = {sre.CATEGORY_NOT_SPACE: f"[^{SPACE}]", sre.CATEGORY_NOT_DIGIT: r"\P{Nd}"}
AT = {
    sre.AT_BOUNDARY: f"(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))",
    sre.AT_END_STRING: "$",
}


def javascript(pattern: str) -> str:
    """Return a Python regular expression as a JavaScript one for the flag `u`.

    Raises:
        KeyError: A part of the expression has no equivalent in JavaScript.
    """
    return _sequence(_parser.parse(pattern), itertools.count())


def _sequence(nodes: Any, numbers: Iterator[int]) -> str:
    return "".join(_node(kind, value, numbers) for kind, value in nodes)


def _node(kind: Any, value: Any, numbers: Iterator[int]) -> str:
    if kind is sre.LITERAL:
        return _escaped(value)
    if kind is sre.NOT_LITERAL:
        return f"[^{_escaped(value)}]"
    if kind is sre.IN:
        return _set(value)
    if kind is sre.AT:
        return AT[value]
    if kind is sre.BRANCH:
        return "(?:" + "|".join(_sequence(branch, numbers) for branch in value[1]) + ")"
    if kind is sre.SUBPATTERN:
        return f"(?:{_sequence(value[-1], numbers)})"
    if kind in (sre.ASSERT, sre.ASSERT_NOT):
        direction, content = value
        sign = "=" if kind is sre.ASSERT else "!"
        return f"(?{'<' if direction < 0 else ''}{sign}{_sequence(content, numbers)})"
    if kind is sre.ATOMIC_GROUP:
        return _atomic(_sequence(value, numbers), numbers)
    least, most, content = value
    times = f"{{{least},{'' if most is sre.MAXREPEAT else most}}}"
    repeated = f"(?:{_sequence(content, numbers)}){times}"
    lazy = {sre.MAX_REPEAT: "", sre.MIN_REPEAT: "?", sre.POSSESSIVE_REPEAT: None}[kind]
    return _atomic(repeated, numbers) if lazy is None else repeated + lazy


def _atomic(content: str, numbers: Iterator[int]) -> str:
    """A group without backtracking: JavaScript does not re-enter a lookahead."""
    name = f"a{next(numbers)}"
    return f"(?:(?=(?<{name}>{content}))\\k<{name}>)"


def _set(items: Any) -> str:
    r"""A set of characters; a negated set with \W is the letters except its other members."""
    is_negated = items[0][0] is sre.NEGATE
    is_letter = is_negated and (sre.CATEGORY, sre.CATEGORY_NOT_WORD) in items
    if len(items) == 1 and items[0][1] in NOT:
        return NOT[items[0][1]]
    members = []
    for kind, value in items:
        if kind is sre.LITERAL:
            members.append(_escaped(value))
        elif kind is sre.RANGE:
            members.append(f"{_escaped(value[0])}-{_escaped(value[1])}")
        elif kind is sre.CATEGORY and value is not sre.CATEGORY_NOT_WORD:
            members.append(SETS[value])
    content = "".join(members)
    if is_letter:
        return f"(?:(?![{content}])[{WORD}])"
    return f"[{'^' if is_negated else ''}{content}]"


def _escaped(code: int) -> str:
    character = chr(code)
    if character in SYNTAX:
        return f"\\{character}"
    is_plain = character.isascii() and character.isprintable() and character != "-"
    return character if is_plain else f"\\u{{{code:x}}}"


if __name__ == "__main__":
    print("// Written by scripts/protected_words_pattern.py from tfformer/text/protected_words.py.")
    print(f"export const PROTECTED_WORDS = {json.dumps(javascript(protected_words().pattern))};")
