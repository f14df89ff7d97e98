"""HTML: its running text as sentences with tags, and all the rest as it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tinyhtml5.constants import Token
from tinyhtml5.tokenizer import HTMLTokenizer

from tfformer.text.blocks import BLOCK, block_end
from tfformer.text.passages import Part, Piece, Role, cut, sentences

LINE_END = re.compile(r"[\r\n]")
ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# Tags that end a paragraph. Any other stands within a line of text, as browsers have it: <b>, and
# those that HTML does not know, such as the <x> of a DeepL client.
ENDING_TAGS = (
    "address applet area article aside audio base blockquote body br button canvas caption center "
    "col colgroup datalist dd details dialog dir div dl dt embed fieldset figcaption figure footer "
    "form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe input legend li link "
    "listing main map marquee menu meta meter nav noembed noframes noscript object ol optgroup "
    "option output p param picture plaintext pre progress rb rp rt rtc ruby script search section "
    "select slot source style summary svg table tbody td template textarea tfoot th thead title "
    "tr track ul video xmp"
)
ENDING = frozenset(ENDING_TAGS.split())
KNOWN_TAGS = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math "
    "nobr q s samp small span strike strong sub sup time tt u var wbr"
)
KNOWN = ENDING | frozenset(KNOWN_TAGS.split())
POINTS = frozenset({"img", "wbr"})
CODE = frozenset({"code", "kbd", "samp", "var"})  # words of a line of text that stay
OTHER_CODE = frozenset({"pre", "script", "style", "textarea", "svg", "math", "template", "object"})
VOID_TAGS = "area base br col embed hr img input link meta param source track wbr"
VOID = frozenset(VOID_TAGS.split())
FOREIGN = frozenset({"svg", "math"})
TEXT = {Token.CHARACTERS, Token.SPACE_CHARACTERS}


class RawToken(NamedTuple):
    """A token of HTML, with the characters that it was read from."""

    raw: str
    kind: Token
    data: Any  # the characters, or a start tag's attributes
    name: str


class _Source:
    """A text in parts as the file that the tokenizer reads.

    Args:
        parts: The text. The tokenizer gets a space for each carriage return.
    """

    def __init__(self, parts: Iterable[str]) -> None:
        self._parts = iter(parts)
        self._ahead = ""  # not yet read by the tokenizer
        self._read = ""  # by the tokenizer, and not yet taken

    def read(self, size: int) -> str:
        """Return the next `size` characters, or what is left."""
        while len(self._ahead) < size and (part := next(self._parts, None)) is not None:
            self._ahead += part
        found, self._ahead = self._ahead[:size], self._ahead[size:]
        self._read += found
        return found.replace("\r", " ")

    def take(self, unused: int) -> str:
        """Return what was read since the last time, but the last `unused` characters."""
        end = len(self._read) - unused
        taken, self._read = self._read[:end], self._read[end:]
        return taken


def read_html(text: Iterable[str], language: str) -> Iterator[Part]:
    """Yield the sentences of an HTML page or fragment, and all the rest as it is.

    Code, scripts, styles and whatever has `translate="no"` or the class `notranslate` stay as they
    are. The tokens are those of the HTML standard, so what is broken is read as browsers read it.

    Args:
        text: The HTML, in parts.
        language: The code of its language.

    Yields:
        A passage for each sentence, and the rest as it is.
    """
    paragraph: list[Piece] = []
    size = 0  # of its text
    tokens = raw_tokens(text)
    before: RawToken | None = None  # the last token but for comments and ends of lines
    for token in tokens:
        if token.kind == Token.START_TAG and _stays(token):
            raw, words = _element(token, tokens)
            piece = Piece(raw, words, Role.COPY if words.strip() else Role.POINT)
        else:
            piece = _piece(token)
        if before is not None and _are_in_a_row(before, token):
            yield from sentences(paragraph, language, ESCAPES)
            paragraph, size = [], 0
        if not _is_between_rows(token):
            before = token
        if _is_of_a_line(token):
            paragraph.append(piece)
            size += len(piece.text)
        else:
            yield from sentences(paragraph, language, ESCAPES)
            yield piece.raw
            paragraph, size = [], 0
        if size >= BLOCK:
            done, paragraph = _divided(paragraph)
            yield from sentences(done, language, ESCAPES)
            size = sum(len(piece.text) for piece in paragraph)
    yield from sentences(paragraph, language, ESCAPES)


def _divided(paragraph: Sequence[Piece]) -> tuple[Sequence[Piece], list[Piece]]:
    """Divide a paragraph that is too long to be held."""
    text = "".join(piece.text for piece in paragraph)
    end = block_end(text)
    first, rest = cut(paragraph, [end, len(text) - end])
    return first, list(rest)


def raw_tokens(text: Iterable[str]) -> Iterator[RawToken]:
    """Yield the tokens of HTML, whose raw characters give the text when joined.

    Args:
        text: Any text, in parts.

    Example:
        >>> [token.raw for token in raw_tokens(["<p>A&a", "mp;B"])]
        ['<p>', 'A', '&amp;', 'B']
    """
    source = _Source(text)
    tokenizer = HTMLTokenizer(source)
    foreign = 0
    for token in tokenizer:
        kind = Token(token["type"])
        if kind == Token.PARSE_ERROR:
            continue
        name = str(token.get("name") or "")
        if name in FOREIGN and not token.get("selfClosing"):
            foreign = max(0, foreign + (1 if kind == Token.START_TAG else -1))
        if kind == Token.START_TAG and not foreign:
            tokenizer.state = _state_after(name, tokenizer)
        raw = source.take(tokenizer.stream.chunk_size - tokenizer.stream.chunk_offset)
        data = token.get("data", "") if raw.startswith("&") or kind not in TEXT else raw
        yield RawToken(raw, kind, data, name)
    if rest := source.take(0):
        yield RawToken(rest, Token.COMMENT, "", "")


def _state_after(name: str, tokenizer: HTMLTokenizer) -> Any:
    """The tokenizer's state after a start tag, in which a script's text has no tags."""
    if name in ("title", "textarea"):
        return tokenizer.rcdata_state
    if name in ("style", "xmp", "iframe", "noembed", "noframes"):
        return tokenizer.rawtext_state
    if name == "script":
        return tokenizer.script_data_state
    return tokenizer.plaintext_state if name == "plaintext" else tokenizer.state


def _stays(tag: RawToken) -> bool:
    """Whether an element is left alone, with all that is in it."""
    attributes = tag.data
    if tag.name in VOID:
        return False
    return (
        tag.name in CODE | OTHER_CODE
        or attributes.get("translate", "").lower() == "no"
        or "notranslate" in attributes.get("class", "").split()
    )


def _element(start: RawToken, tokens: Iterator[RawToken]) -> tuple[str, str]:
    """Read on to the end of an element; return all its characters, and its text."""
    raw = [start.raw]
    words = []
    depth = 1
    for token in tokens:
        raw.append(token.raw)
        if token.kind in TEXT:
            words.append(token.data)
        elif token.name == start.name:
            depth += {Token.START_TAG: 1, Token.END_TAG: -1}.get(token.kind, 0)
        if not depth:
            break
    return "".join(raw), "".join(words)


def _is_of_a_line(token: RawToken) -> bool:
    """Whether a token stands within a line of text."""
    if token.kind in (Token.START_TAG, Token.END_TAG):
        return token.name not in ENDING
    return token.kind in TEXT or token.kind == Token.COMMENT


def _are_in_a_row(before: RawToken, token: RawToken) -> bool:
    """Whether an element that HTML does not know begins where another one has ended.

    Such are rows of XML, and no words of a sentence: <row>One</row><row>two</row>.
    """
    ends = before.kind == Token.END_TAG and token.kind == Token.START_TAG
    return ends and not {before.name, token.name} & KNOWN


def _is_between_rows(token: RawToken) -> bool:
    """Whether a token may stand between two rows: the end of a line, or a comment."""
    ends_line = token.kind == Token.SPACE_CHARACTERS and LINE_END.search(token.raw) is not None
    return ends_line or token.kind == Token.COMMENT


def _piece(token: RawToken) -> Piece:
    if token.kind in TEXT:
        return Piece(token.raw, token.data)
    if token.name in POINTS or token.name in CODE:
        return Piece(token.raw, "", Role.POINT)
    if token.kind == Token.START_TAG:
        return Piece(token.raw, "", Role.OPEN, token.name)
    if token.kind == Token.END_TAG:
        return Piece(token.raw, "", Role.CLOSE, token.name)
    return Piece(token.raw, "", Role.POINT)
