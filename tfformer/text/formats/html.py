"""HTML: divide the running text into sentences with tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import chain, pairwise
from typing import Any, NamedTuple

from tinyhtml5.constants import Token
from tinyhtml5.tokenizer import HTMLTokenizer

from tfformer.text.formats.footnotes_and_formulas import CLOSING, with_scripts
from tfformer.text.formats.html_elements import OpenElement
from tfformer.text.languages import language_tag
from tfformer.text.marked_sentence import Part, Piece, Reading, Role, cut, sentences
from tfformer.text.placing import MAX_DEPTH
from tfformer.text.segmentation import BLOCK, block_end

LINE_END = re.compile(r"[\r\n]")
ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
IN_ATTRIBUTE = {  # quotation mark -> escapes
    "double": {"&": "&amp;", "<": "&lt;", '"': "&quot;"},
    "single": {"&": "&amp;", "<": "&lt;", "'": "&#39;"},
}
# Tags that end a paragraph. Any other tag is part of a line, as in browsers: <b>, and unknown tags
# such as the <x> of a DeepL client.
ENDING_TAGS = (
    "address applet article aside base blockquote body br button caption center col "
    "colgroup datalist dd details dialog dir div dl dt fieldset figcaption figure footer form "
    "frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe input label legend li "
    "listing main marquee menu meter nav noembed noframes ol optgroup option p "
    "plaintext pre progress search section select summary table tbody td textarea "
    "tfoot th thead title tr ul xmp"
)
ENDING = frozenset(ENDING_TAGS.split())
KNOWN_TAGS = (
    "a abbr acronym area audio b bdi bdo big canvas cite code data del dfn em embed font i img ins "
    "kbd link map mark math meta nobr noscript object output param picture q rb rp rt rtc ruby s "
    "samp script slot small source span strike strong style sub sup svg template time track tt u "
    "var video wbr"
)
KNOWN = ENDING | frozenset(KNOWN_TAGS.split())
SPAN = "span"
NO_ROWS = KNOWN - {"a", SPAN}  # any other element may be a row: <row> in XML, <a> in a menu
CODE = frozenset({"code", "kbd", "samp", "var", "math", "pre", "textarea"})  # visible, but copied
HIDDEN_TAGS = (
    "audio canvas iframe listing noembed noframes noscript object plaintext rp rt rtc script style "
    "svg template video xmp"
)
HIDDEN = frozenset(HIDDEN_TAGS.split())  # their text is invisible, or outside the line
VOID_TAGS = "area base br col embed hr img input link meta param source track wbr"
VOID = frozenset(VOID_TAGS.split())
POINTS = VOID - {"br", "hr"}
FOREIGN = frozenset({"svg", "math"})
MAX_PIECES = 4_096  # longest buffered paragraph with rows
TEXT = {Token.CHARACTERS, Token.SPACE_CHARACTERS}
PRESERVED = "preserved"  # the name of XML text in which white space is kept


class RawToken(NamedTuple):
    """A token of HTML, with the characters that it was read from."""

    raw: str
    kind: Token
    data: Any  # the characters, or a start tag's attributes
    name: str
    is_empty: bool = False  # whether a start tag is also the end of its element
    piece: Piece | None = None  # for a token of another format


class _Source:
    """Presents a text in parts to the tokenizer as a file.

    Args:
        parts: The text. The tokenizer receives a space instead of each carriage return.
    """

    def __init__(self, parts: Iterable[str]) -> None:
        self._parts = iter(parts)
        self._ahead = ""  # not yet read by the tokenizer
        self._read = ""  # tokenized text that no token contains yet

    def read(self, size: int) -> str:
        """Return the next `size` characters, or what is left."""
        while len(self._ahead) < size and (part := next(self._parts, None)) is not None:
            self._ahead += part
        chunk, self._ahead = self._ahead[:size], self._ahead[size:]
        self._read += chunk
        return chunk.replace("\r", " ")

    def take(self, unused: int) -> str:
        """Return the text read since the last call, except its last `unused` characters."""
        end = len(self._read) - unused
        taken, self._read = self._read[:end], self._read[end:]
        return taken


def read_html(text: Iterable[str], reading: Reading) -> Iterator[Part]:
    """Yield the sentences of an HTML page or fragment and the text between them.

    Code, scripts, styles and elements with `translate="no"` or the class `notranslate` do not
    change. The HTML standard defines the tokens, so broken HTML is read as in a browser.
    """
    return read_tokens(raw_tokens(text), reading)


def read_tokens(tokens: Iterator[RawToken], reading: Reading) -> Iterator[Part]:
    """Yield the sentences in the text of tokens, and the strings between them."""
    paragraph = _Paragraph()
    for token, piece in read_pieces(tokens, reading):
        if is_of_a_line(token):
            paragraph.add(token, piece)
            yield from _sentences(paragraph.take_what_is_long(), reading)
        else:
            yield from _sentences(paragraph.rows(), reading)
            yield from piece.parts
            paragraph = _Paragraph()
    yield from _sentences(paragraph.rows(), reading)


def _sentences(stretches: Iterable[Sequence[Piece]], reading: Reading) -> Iterator[Part]:
    for pieces in stretches:
        is_preserved = any(piece.name == PRESERVED for piece in pieces)
        yield from sentences(with_scripts(pieces), reading, ESCAPES, is_preserved)


@dataclass
class _Open:
    """An open element that may contain rows or be a row."""

    name: str  # empty for the paragraph
    has_words: bool = False  # outside the elements that may be rows
    rows: list[int] = field(default_factory=list)  # the positions of the rows among the pieces


class _Paragraph:
    """The pieces since the last tag that ends a paragraph.

    An unknown element is part of a sentence, as in browsers: Say <x>go</x><y>now</y>. Unknown
    elements side by side are rows if no words are beside them, and each row is a sentence:
    <row>One</row><row>two</row>. The same rule applies to links, and to <span> if a word ends
    before it and another word begins in it: <span>One</span><span>Two</span>.
    """

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._size = 0  # characters read
        self._open = [_Open("")]  # outermost first
        self._rows: list[int] = []  # rows of elements that have ended
        self._before: RawToken | None = None  # the last token, except comments and line ends
        self._last = ""  # character of the text
        self._span: tuple[_Open, int] | None = None  # a span that may be a row and has no words yet

    def add(self, token: RawToken, piece: Piece) -> None:
        """Add a piece with its token; for an element that is copied, this is the first token."""
        inner = self._open[-1]
        if self._before is not None and _are_in_a_row(self._before, token) and not inner.has_words:
            if SPAN in (self._before.name, token.name):
                self._span = self._span or (inner, len(self._pieces))
            else:
                inner.rows.append(len(self._pieces))
        if piece.text:
            self._add_span(piece.text)
        if not _is_between_rows(token):
            is_kept = token.kind == Token.START_TAG and piece.role is not Role.OPEN
            self._before = token._replace(kind=Token.END_TAG) if is_kept else token
        self._pieces.append(piece)
        self._size += len(piece.text)
        if piece.role is Role.CLOSE:
            self._close(token.name)
        elif piece.role is Role.OPEN and token.name not in NO_ROWS:
            if len(self._open) < MAX_DEPTH:
                self._open.append(_Open(token.name))
        elif piece.text.strip() and (token.kind in TEXT or token.name in NO_ROWS):
            inner.has_words = True
            inner.rows.clear()

    def _add_span(self, text: str) -> None:
        """Begin a row at the last span if its text does not continue the word before it."""
        if self._span is not None and _are_words(self._last, text[0]):
            element, index = self._span
            element.rows.append(index)
        self._span = None
        self._last = text[-1]

    def rows(self) -> Iterator[Sequence[Piece]]:
        """Yield the pieces of each row, or all pieces."""
        row_starts = self._row_starts()
        for start, end in pairwise([0, *row_starts, len(self._pieces)]):
            yield self._pieces[start:end]

    def take_what_is_long(self) -> Iterator[Sequence[Piece]]:
        """Yield and remove rows or sentences if the paragraph is too long to be held."""
        is_long = self._size >= BLOCK
        if (is_long or len(self._pieces) >= MAX_PIECES) and self._row_starts():
            *complete, last = self.rows()
            yield from complete
            self._keep(last)
        elif is_long:
            text = "".join(piece.text for piece in self._pieces)
            end = block_end(text)
            first, second = cut(self._pieces, [end, len(text)])
            yield first
            self._keep(second)

    def _close(self, name: str) -> None:
        """End an element and the open elements in it."""
        if any(element.name == name for element in self._open[1:]):
            while (element := self._open.pop()).name != name:
                self._rows += element.rows
            self._rows += element.rows

    def _row_starts(self) -> list[int]:
        return sorted(chain(self._rows, *(element.rows for element in self._open)))

    def _keep(self, pieces: Sequence[Piece]) -> None:
        self._pieces = list(pieces)
        self._size = sum(len(piece.text) for piece in pieces)
        for rows in (self._rows, *(element.rows for element in self._open)):
            rows.clear()
        self._span = None


def raw_tokens(text: Iterable[str]) -> Iterator[RawToken]:
    """Yield the tokens of HTML; joining their raw characters gives the text."""
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
        is_empty = name in VOID or bool(token.get("selfClosing") and (foreign or name in FOREIGN))
        yield RawToken(raw, kind, data, name, is_empty)
    if remainder := source.take(0):
        yield RawToken(remainder, Token.COMMENT, "", "")


def _state_after(name: str, tokenizer: HTMLTokenizer) -> Any:
    """The tokenizer's state after a start tag; a script's text, for example, contains no tags."""
    if name in ("title", "textarea"):
        return tokenizer.rcdata_state
    if name in ("style", "xmp", "iframe", "noembed", "noframes"):
        return tokenizer.rawtext_state
    if name == "script":
        return tokenizer.script_data_state
    return tokenizer.plaintext_state if name == "plaintext" else tokenizer.state


# --- Elements that stay -------------------------------------------------------------------------


def stays(name: str, attributes: Mapping[str, str]) -> bool:
    """Return whether an element is copied with its contents instead of being translated."""
    return (name in CODE | HIDDEN and not is_translated(attributes)) or is_left_alone(attributes)


def is_left_alone(attributes: Mapping[str, str]) -> bool:
    """Return whether attributes say that an element is not translated."""
    return (
        attributes.get("translate", "").lower() == "no"
        or "notranslate" in attributes.get("class", "").split()
    )


def is_translated(attributes: Mapping[str, str]) -> bool:
    """Return whether attributes say that an element is translated, even inside a copied one."""
    return attributes.get("translate", "no").lower() in ("", "yes")


def read_pieces(tokens: Iterator[RawToken], reading: Reading) -> Iterator[tuple[RawToken, Piece]]:
    """Yield pieces, each with its token; for an element that is copied, with its first token."""
    token = next(tokens, None)
    while token is not None:
        if token.kind != Token.START_TAG or token.is_empty or not stays(token.name, token.data):
            yield token, _piece(token, reading)
            token = next(tokens, None)
            continue
        element, behind = _element(token, tokens)
        if token.name not in HIDDEN and any(map(_is_translated_tag, element)):
            yield from _kept_pieces(iter(element), reading)
        else:
            yield token, _kept_piece(element, reading)
        token = behind


def _is_translated_tag(token: RawToken) -> bool:
    return token.kind == Token.START_TAG and is_translated(token.data)


def _kept_pieces(tokens: Iterator[RawToken], reading: Reading) -> Iterator[tuple[RawToken, Piece]]:
    """Yield the pieces of an element that is copied, except for translated elements in it."""
    token = next(tokens, None)
    while token is not None:
        behind = None
        if _is_translated_tag(token) and not token.is_empty:
            element, behind = _element(token, tokens)
            yield token, _piece(token, reading)
            yield from read_pieces(iter(element[1:]), reading)
        elif token.kind in TEXT and token.raw.strip():
            yield token, Piece(token.raw, token.data, Role.COPY)
        else:
            yield token, _piece(token, reading._replace(attributes=False))
        token = behind or next(tokens, None)


def _element(start: RawToken, tokens: Iterator[RawToken]) -> tuple[list[RawToken], RawToken | None]:
    """Read the tokens of an element, and the token after it."""
    element = OpenElement(start.name)
    element_tokens = [start]
    behind = next(tokens, None)
    while behind is not None and _belongs(behind, element):
        element_tokens.append(behind)
        behind = next(tokens, None)
    return element_tokens, behind


def _kept_piece(element: Sequence[RawToken], reading: Reading) -> Piece:
    """Return an element as one piece that is copied, except for translatable attributes."""
    start, *others = element
    raw = "".join(token.raw for token in element)
    text = "".join(token.data for token in element if token.kind in TEXT)
    within = tuple(attribute_parts(start, reading))
    if within:
        within = (*within, "".join(token.raw for token in others))
    if start.name in HIDDEN or not text.strip():
        return Piece(raw, "", Role.POINT, within=within)
    return Piece(raw, text, Role.COPY, within=within)


def _belongs(token: RawToken, element: OpenElement) -> bool:
    """Whether a token is within an element, or its end tag."""
    if not element.is_open:
        return False
    if token.kind == Token.START_TAG:
        return element.start(token.name, token.is_empty)
    return token.kind != Token.END_TAG or element.end(token.name)


# --- Paragraphs ---------------------------------------------------------------------------------


def is_of_a_line(token: RawToken) -> bool:
    """Whether a token is within a line of text."""
    if token.kind in (Token.START_TAG, Token.END_TAG):
        return token.name not in ENDING
    return token.kind in TEXT or token.kind == Token.COMMENT


def _are_in_a_row(before: RawToken, token: RawToken) -> bool:
    """Whether an element that may be a row begins where another one has ended."""
    ends = before.kind == Token.END_TAG and token.kind == Token.START_TAG
    return ends and not {before.name, token.name} & NO_ROWS


def _are_words(end: str, beginning: str) -> bool:
    """Whether one word ends and another begins, judging by the adjacent characters."""
    is_end = end in CLOSING or (end.isalnum() and not end.isupper())
    return is_end and beginning.isupper()


def _is_between_rows(token: RawToken) -> bool:
    """Whether a token may be between two rows: the end of a line, or a comment."""
    ends_line = token.kind == Token.SPACE_CHARACTERS and LINE_END.search(token.raw) is not None
    return ends_line or token.kind == Token.COMMENT


def _piece(token: RawToken, reading: Reading) -> Piece:
    if token.piece is not None:
        return token.piece
    if token.kind in TEXT:
        return Piece(token.raw, token.data, name=token.name)
    is_tag = token.kind in (Token.START_TAG, Token.END_TAG)
    if not is_tag or token.name in POINTS or token.name in CODE | HIDDEN:
        role = Role.POINT
    else:
        role = Role.OPEN if token.kind == Token.START_TAG else Role.CLOSE
    within: tuple[Part, ...] = ()
    if token.kind == Token.START_TAG and token.data:
        within = tuple(attribute_parts(token, reading))
    return Piece(token.raw, "", role, token.name, within)


# --- Attributes ---------------------------------------------------------------------------------

ATTRIBUTE = re.compile(
    r"""(?P<name>[^\s"'<>/=]+)(?P<equals>\s*=\s*)(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'<>`]+))"""
)
SEEN = frozenset({"alt", "title", "placeholder", "aria-label"})
DESCRIPTIONS = frozenset({"description", "og:description", "twitter:description"})


def attribute_parts(tag: RawToken, reading: Reading) -> Iterator[Part]:
    """Yield the parts of a start tag, with attributes as sentences, if any must be translated."""
    if is_left_alone(tag.data):
        return
    wanted = set(SEEN if reading.attributes else ())
    described = str(tag.data.get("name") or tag.data.get("property") or "").lower()
    if reading.attributes and tag.name == "meta" and described in DESCRIPTIONS:
        wanted.add("content")
    languages = {"lang", "xml:lang"} if tag.name == "html" and reading.target_language else set()
    if not (wanted | languages) & tag.data.keys():
        return
    end = 0
    for match in ATTRIBUTE.finditer(tag.raw, len(tag.raw.split(maxsplit=1)[0])):
        kind = next(kind for kind in ("double", "single", "bare") if match[kind] is not None)
        name = match["name"].lower()
        if name in languages:
            yield tag.raw[end : match.start(kind)] + language_tag(reading.target_language or "")
        elif name in wanted and kind != "bare":
            yield tag.raw[end : match.start(kind)]
            pieces = _value_pieces(match[kind])
            yield from sentences(pieces, reading, IN_ATTRIBUTE[kind], keeps_spaces=True)
        else:
            continue
        end = match.end(kind)
    yield tag.raw[end:]


def _value_pieces(value: str) -> list[Piece]:
    """The value of an attribute as pieces; each entity and each end of a line is a piece."""
    parts = re.split(r"(&[#\w]+;?|\s*[\r\n]\s*)", value)
    return [
        Piece(part, " ", Role.LINE) if LINE_END.search(part) else Piece(part, unescape(part))
        for part in parts
        if part
    ]
