"""Words that no translation changes: addresses, numbers, placeholders, emoji."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from tfformer.special_ids import PLACEHOLDER as SYMBOL
from tfformer.text.passages import Passage, Piece, Role, cut, raw_text
from tfformer.text.segmentation import LETTER

GROUP = r"\([^\s<>\"'()]*\)|\[[^\s<>\"'\[\]]*\]"  # brackets, as at the end of a page's address
# Up to a letter or a group: the full stop behind it, or the bracket around it, is the sentence's.
TAIL = rf"(?>{GROUP}|[^\s<>\"'])*(?:{GROUP}|[\w/=&#-])"
URL = rf"(?:https?|ftp)://{TAIL}|\bwww\.[\w-]+(?:\.[\w-]+)+(?:/{TAIL}|/)?"
E_MAIL = r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"
NOTE = r"\[\^[\w-]{1,60}\]"  # the mark of a footnote in Markdown
# Of printf: "%1$s", "%-10.2f", "%@"; no space, lest "5 % of" be one.
CONVERSION = (
    r"(?:\d{1,3}\$)?[-+#0]{0,5}(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?"
    r"(?:(?:hh?|ll?|[qLjzt])?[sdifuxXeEgGcop]\b|@)"
)
PLACEHOLDER = (
    r"\{\{[^{}\n]{1,100}\}\}|\{%[^{}\n]{1,100}%\}|[#$%]?\{[^{}\s]{1,60}\}"
    rf"|%\([\w.]{{1,60}}\)[sdif]|%{CONVERSION}"
)
FOLDER = r"/(?:\.{1,2}(?=/)|\.?[\w-]+(?:\.[\w-]+)*)"  # without a full stop behind it
ON_WINDOWS = rf"[A-Za-z]:(?:(?:\\[\w$~-]+(?:\.[\w$~-]+)*)+|(?:{FOLDER}){{2,}})"
ENDING = r"(?:[a-z]{2}[a-z\d]{0,2}|mp[34])\b"
PATH = rf"(?=[~./])(?:~?(?:\.{{1,2}})?(?:{FOLDER}){{2,}}|(?<![\w~.])(?:~|\.{{1,2}}){FOLDER})"
NAME = rf"(?<![\w./-])/?(?:[\w-]+/)*(?:[\w-]\.)*[\w-]{{2,255}}(?:\.[\w-]+)*\.{ENDING}"
FILE = rf"{ON_WINDOWS}|{NAME}"
MEASURE = r"[kcmµ]?m[²³]?|[kmµ]?g|[kmcd]?l|[kMGT]?B|[kMG]?Hz|[kMG]?Wh?|[kM]?V|EUR|USD|GBP|CHF"
SHARE = r"/(?:h|s|min|k?m[²³]?|k?g|l)"  # of a compound unit, as km/h
SYMBOLS = rf"[%‰](?![({{]|{CONVERSION})|°[CF]?|[€$£¥](?![\d{{])|x(?!\w)"
UNIT = rf"(?:{SYMBOLS}|(?:{MEASURE})(?:{SHARE})?(?![\w/]))"
SIGN = r"(?<![^\s(\[\"'„“«»])[-−+±]"  # of a number, no dash between two words
TIMES = r"\s?[x×]\s?\d+(?:[.,]\d+)*"
NUMBER = rf"[€$£¥]\s?\d+(?:[.,:]\d+)*|\d+(?:[.,:/-]\d+)*(?:{TIMES})*(?:\s?{UNIT})?(?!\w)"
VERSION = r"(?<![\w.])v\d+(?:\.\d+)+(?:[-+][\w.]*\w)?(?!\w)"
# Escaped markup, and signs that stand for a word: no punctuation, which is the translation's own.
ESCAPED = (
    r"</?[a-zA-Z][\w:.-]{0,60}(?:\s[^<>\n]{0,200})?/?>|<!--[^<>\n]{0,200}-->"
    r"|(?<!\S)(?:[<>&|=]|[<>=!]=|=>|->|<-|&&|\|\|)(?!\S)"
    r"|[©®§¶\u2190-\u21ff\u2200-\u22ff]"
)
COMPANY = r"[A-Z]\w{0,20}&[A-Z]\w{0,20}(?!\w)"
SAID = re.compile(r"[^\W_]")  # a letter or a number
EMOJI = (
    "(?:[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff]"
    "[\ufe0f\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*)+"
)


@functools.lru_cache(maxsize=16)
def kept_pattern(keep: Sequence[str] = ()) -> re.Pattern[str]:
    """Return the pattern of what stays as it is.

    Args:
        keep: Words and phrases that stay too; those that are blank are left out.

    Example:
        >>> kept_pattern(("Foo Inc",)).findall("Foo Inc pays $3.50 at https://x.org/a.")
        ['Foo Inc', '$3.50', 'https://x.org/a']
    """
    phrases = sorted((phrase.strip() for phrase in keep), key=len, reverse=True)
    own = [rf"(?<!\w){re.escape(phrase)}(?!\w)" for phrase in phrases if phrase]
    numbers = rf"(?<![.,])(?:{SIGN})?(?:{NUMBER})"
    words = "|".join([E_MAIL, COMPANY, FILE, VERSION, numbers])  # only where a word begins
    kinds = [SYMBOL.pattern, ESCAPED, URL, PLACEHOLDER, NOTE, PATH, EMOJI]
    return re.compile("|".join([*own, *kinds, rf"(?<!\w)(?:{words})"]))


def with_copies(
    passage: Passage, pattern: re.Pattern[str], placeholders: Sequence[str] = ()
) -> Passage:
    """Make pieces of their own of the words that stay.

    Args:
        passage: A sentence.
        pattern: What stays.
        placeholders: Symbols that the model copies. They stand for code first, then for words that
            stay; one that the sentence itself has is left out.

    Returns:
        The same sentence; itself if nothing in it stays.
    """
    text = "".join(piece.text for piece in passage.pieces)
    free = iter([symbol for symbol in placeholders if symbol not in text])
    passage = passage._replace(pieces=tuple(_with_symbol(one, free) for one in passage.pieces))
    text = "".join(piece.text for piece in passage.pieces)
    ends = [end for match in pattern.finditer(text) for end in match.span()]
    if not ends:
        return passage
    bounds = [0, *ends, len(text)]
    groups = cut(passage.pieces, [end - start for start, end in itertools.pairwise(bounds)])
    pieces = [
        piece
        for number, group in enumerate(groups)
        for piece in (_with_copy(group, free) if number % 2 else group)
    ]
    return passage._replace(pieces=tuple(pieces))


def has_words(passage: Passage) -> bool:
    """Return whether there is a letter in a sentence beside what stays as it is."""
    return any(piece.role is Role.TEXT and LETTER.search(piece.text) for piece in passage.pieces)


def _with_symbol(piece: Piece, free: Iterator[str]) -> Piece:
    """Let a placeholder stand for code and the like, if there is one."""
    return piece._replace(text=next(free, piece.text)) if piece.role is Role.COPY else piece


def without_strays(translation: str, source: str) -> str:
    """Remove the placeholders of a translation that its source has not as often.

    Args:
        translation: The translation.
        source: Its source.

    Returns:
        The translation; each removed symbol takes the space before it along. The source itself if
        no word is left, or was there in the first place.

    Example:
        >>> without_strays("Um ⟦2⟧ in ⟦1⟧ ⟦1⟧.", "In ⟦1⟧.")
        'Um in ⟦1⟧.'
        >>> without_strays("⟦2⟧.", "Ah.")
        'Ah.'
    """
    symbols = Counter(SYMBOL.findall(translation)) - Counter(SYMBOL.findall(source))
    found = translation
    for symbol, surplus in symbols.items():
        for _ in range(surplus):
            before, _, after = found.rpartition(symbol)
            found = before.removesuffix(" ") + after
    return found if SAID.search(found) else source


def _with_copy(group: Sequence[Piece], free: Iterator[str]) -> list[Piece]:
    """Make one piece of the text in a group, unless markup stands within it.

    Its text is the next free placeholder, if there is one.
    """
    texts = [number for number, piece in enumerate(group) if piece.role is Role.TEXT]
    if not texts or texts[-1] - texts[0] >= len(texts):
        return list(group)
    words = group[texts[0] : texts[-1] + 1]
    text = "".join(piece.text for piece in words)
    copy = Piece(raw_text(words), next(free, text), Role.COPY)
    return [*group[: texts[0]], copy, *group[texts[-1] + 1 :]]
