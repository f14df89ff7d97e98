"""XML: divide the running text into sentences with tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html.entities import html5
from itertools import pairwise
from typing import Any, NamedTuple
from xml.parsers import expat

from tinyhtml5.constants import Token

from tfformer.text.formats.html import (
    CODE,
    HIDDEN,
    KNOWN,
    PRESERVED,
    VOID,
    RawToken,
    is_left_alone,
    is_translated,
    read_tokens,
)
from tfformer.text.marked_sentence import Part, Reading
from tfformer.text.segmentation import check_unicode

QUOTED = r"\"[^\"]*+\"|'[^']*+'"
ASIDE = r"<\?.*?\?>|<!--.*?-->"
DECLARED = rf"(?:{QUOTED}|{ASIDE}|[^\]\"'<]|<(?!!--|\?))*+"  # entities and elements
# The text before the first element or word. The parser does not receive it, so the document's
# entities are not expanded: "&name;" does not change unless HTML defines it.
PROLOG = re.compile(
    rf"(?:[ \t\r\n]|{ASIDE})*+"
    rf"(?:<!DOCTYPE(?:{QUOTED}|[^<>\[\"'])*+(?:\[{DECLARED}\]\s*+)?>)?",
    re.DOTALL,
)
# The parser receives the text between these, because it may contain several elements, words beside
# them, and entities that are declared elsewhere.
BEFORE, BEHIND = b'<!DOCTYPE _ SYSTEM "_"><_>', b"</_>"
# Names that mean the same in XML as in HTML: <p>, <li>, <b>. HTML's code elements and its elements
# without an end tag are treated like any other element.
SHARED = KNOWN - CODE - HIDDEN - VOID | {"br", "hr"}
STAYS = {"translate": "no"}
XHTML = "http://www.w3.org/1999/xhtml"
SVG = "http://www.w3.org/2000/svg"


class XmlError(ValueError):
    """A text that is not well-formed XML."""


class _LocatedToken(NamedTuple):
    """A token, and the byte offset in a text at which it begins."""

    offset: int
    kind: Token
    data: Any
    name: str


def read_xml(text: Iterable[str], reading: Reading) -> Iterator[Part]:
    """Yield the sentences of an XML document or fragment and the text between them.

    CDATA sections and elements with `translate="no"` or the class `notranslate` do not change. The
    document is read as a whole; XmlError is raised if it is not well-formed.
    """
    document = "".join(text)
    check_unicode(document)
    return read_tokens(_Parser(document).tokens(), reading)


class _Element(NamedTuple):
    """An open element."""

    name: str = ""  # the name of the same element in HTML
    namespace: str = ""
    stays: bool = False  # whether its text is copied
    is_inside: bool = False  # whether it is part of an element that is copied
    keeps_spaces: bool = False


def _stays(name: str, namespace: str, attributes: Mapping[str, str], is_around: bool) -> bool:
    """Whether the text of an element is copied."""
    prefixed = [value for key, value in attributes.items() if key.endswith(":translate")]  # of ITS
    if is_translated(attributes) or "yes" in prefixed:
        return False
    if is_left_alone(attributes) or "no" in prefixed:
        return True
    if attributes.get("translatable") == "false":  # Android
        return True
    if namespace == XHTML:
        return is_around or name in CODE | HIDDEN
    return is_around or (namespace == SVG and name in ("style", "script"))


def _name_in_html(name: str, local: str, namespace: str) -> str:
    """An element's name in HTML if it means the same there, otherwise a name that HTML lacks."""
    if namespace == XHTML or (namespace == SVG and local in ("style", "script")):
        return local
    return name if name in SHARED else f"xml:{name}"


class _Parser:
    """Finds the tokens of a document or a fragment.

    Tags within an element that is copied become comments.
    """

    def __init__(self, text: str) -> None:
        prolog = PROLOG.match(text)
        self._prolog = prolog[0] if prolog else ""
        self._source = text[len(self._prolog) :].encode()
        self._read_tokens: list[_LocatedToken] = []
        self._open: list[_Element] = [_Element()]
        self._is_running = False  # whether more characters may belong to the last token
        self._expat = expat.ParserCreate("utf-8")
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._characters
        self._expat.StartCdataSectionHandler = lambda: self._start("![CDATA[", STAYS)
        self._expat.EndCdataSectionHandler = lambda: self._end("![CDATA[")
        self._expat.DefaultHandler = self._other
        try:
            self._expat.Parse(BEFORE + self._source + BEHIND, True)
        except expat.ExpatError as error:
            raise XmlError(self._reason(error)) from None

    def tokens(self) -> Iterator[RawToken]:
        """Yield the tokens; joining their raw characters gives the text."""
        yield RawToken(self._prolog, Token.DOCTYPE, "", "")
        # The last token is the end tag in `BEHIND`.
        for token, following in pairwise(self._read_tokens):
            raw = self._source[token.offset : following.offset].decode()
            is_space = token.kind == Token.CHARACTERS and raw.isspace()
            kind = Token.SPACE_CHARACTERS if is_space else token.kind
            yield RawToken(raw, kind, raw if token.data is None else token.data, token.name)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        around = self._open[-1]
        prefix, _, local = name.rpartition(":")
        namespace = attributes.get(f"xmlns:{prefix}" if prefix else "xmlns", around.namespace)
        stays = _stays(local, namespace, attributes, around.stays)
        is_inside = stays and around.stays
        data = attributes if namespace == XHTML else {}
        if stays != around.stays:
            data = {**data, "translate": "no" if stays else "yes"}
        space = attributes.get("xml:space", "preserve" if around.keeps_spaces else "")
        shared = _name_in_html(name, local, namespace)
        self._add(Token.COMMENT if is_inside else Token.START_TAG, data, shared)
        self._open.append(_Element(shared, namespace, stays, is_inside, space == "preserve"))

    def _end(self, name: str) -> None:
        element = self._open.pop()
        self._add(Token.COMMENT if element.is_inside else Token.END_TAG, "", element.name)

    def _characters(self, data: str) -> None:
        """Add text or a reference; expat reports text in several parts."""
        if self._source.startswith(b"&", self._offset()):
            self._add(Token.CHARACTERS, data, self._kind_of_words())
        elif not self._is_running:
            self._add(Token.CHARACTERS, None, self._kind_of_words())
            self._is_running = True

    def _other(self, data: str) -> None:
        """Add a comment, a processing instruction, or an entity that XML does not know."""
        if not data.startswith("&"):
            self._add(Token.COMMENT, "")
        elif known := html5.get(data[1:]):
            self._add(Token.CHARACTERS, known, self._kind_of_words())
        else:
            self._start(data, STAYS)
            self._add(Token.CHARACTERS, data)
            self._is_running = False
            self._end(data)

    def _add(self, kind: Token, data: Any, name: str = "") -> None:
        self._is_running = False
        if self._offset() >= 0:
            self._read_tokens.append(_LocatedToken(self._offset(), kind, data, name))

    def _kind_of_words(self) -> str:
        return PRESERVED if self._open[-1].keeps_spaces else ""

    def _offset(self) -> int:
        return self._expat.CurrentByteIndex - len(BEFORE)

    def _reason(self, error: expat.ExpatError) -> str:
        read = self._prolog + self._source[: self._offset()].decode()
        line, column = read.count("\n") + 1, len(read.rpartition("\n")[2]) + 1
        return (
            f"the XML cannot be read: {expat.ErrorString(error.code)} in line {line}, column "
            f"{column}; close each element, and write & as &amp; and < as &lt;"
        )
