"""Markdown: divide the running text into sentences with markup."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token as InlineToken
from tinyhtml5.constants import Token

from tfformer.text.formats.footnotes_and_formulas import with_scripts
from tfformer.text.formats.html import (
    TEXT,
    RawToken,
    is_of_a_line,
    raw_tokens,
    read_html,
    read_pieces,
    read_tokens,
)
from tfformer.text.marked_sentence import EMPHASIS, Part, Piece, Reading, Role, sentences

END = r"[ \t]*(?:\r\n|\r|\n)"
# Front matter in YAML, TOML or JSON. A paragraph between two rules is not front matter.
HEAD = re.compile(
    rf"\A(?:---{END}(?:[ \t]*#[^\r\n]*{END})*[\w\"'.-][^:\r\n]*:[ \t\r\n]"
    r".*?[\r\n](?:---|\.\.\.)"
    rf"|\+\+\+{END}.*?[\r\n]\+\+\+|\{{{END}[ \t]*\".*?[\r\n]\}})(?:{END}|[ \t]*\Z)",
    re.DOTALL,
)
LINE_END = re.compile(r"\r\n|\r|\n")
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
LINE_OR_END = re.compile(r"\r\n|\r|\n|[^\r\n]+")
SPECIAL = "\\`*_[]<>|~"
MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)]|#{1,6})(?!\S)")  # of an item of a list, or of a heading
SPAN = "span"  # in a token's meta: its span in the paragraph
FOOTNOTE = re.compile(r"\[\^[^\]\s]{1,60}\]")
FOOTNOTE_TEXT = re.compile(FOOTNOTE.pattern + r":[ \t]*")
FOOTNOTE_INDENT = 4  # spaces before a footnote's second and later paragraphs
ALERT = re.compile(r"\A\[![a-zA-Z][\w-]{1,30}\][+-]?(?!\S)")  # the kind of an alert, as in [!NOTE]
# As in Pandoc, "$5 and $6" is not a formula. A formula contains no word and does not begin like a
# price.
MATH = re.compile(
    r"\$\$(?:[^$\\]|\\.)+\$\$|\$(?![\s$]|\d[\d.,]*(?:\s|/))(?:[^$\\\n]|\\[^\n])+(?<!\s)\$(?!\w)",
    re.DOTALL,
)
PLAIN_WORD = re.compile(r"(?<![\\a-zA-Z{])[a-zA-Z]{3,}")
MAX_LINES = 100  # lines in a block of mathematics
SIGNS = "*_#~^|@=+`$[]{}"  # escaped by a backslash, these are protected, unlike punctuation
# What a reader sees or hears: the text of an image, and the title of an image or a link.
SEEN = re.compile(
    r"(?<=\A!\[)[^\[\]\\`*_~<>&\r\n]+(?=\]\(|\]\[[^\]])|(?<=\s\")[^\"\\&\r\n]+(?=\"[ \t]*\)\Z)"
)
IN_SEEN = {character: "\\" + character for character in SPECIAL + '"'}
LABEL = "text"  # in the meta of the end of a link: its text

InlineRule = Callable[[StateInline, bool], bool]
Spans = tuple[int, int]


class Block(NamedTuple):
    """A paragraph, heading or cell in the document."""

    text: str  # the document
    content: str  # the parsed paragraph, without markers of lists and quotations
    # The position in `content` of each line, or of each stretch between `\|` in a cell
    content_starts: list[int]
    text_starts: list[int]  # the position in `text` of the same stretches

    def raw(self, start: int, end: int) -> str:
        """The document between two positions in the content."""
        return self.text[self.offset(start) : self.offset(end)]

    def offset(self, position: int) -> int:
        """The position in the document of a position in the content."""
        stretch = bisect_right(self.content_starts, position) - 1
        return self.text_starts[stretch] + position - self.content_starts[stretch]


def read_markdown(text: Iterable[str], reading: Reading) -> Iterator[Part]:
    """Yield the sentences of Markdown (CommonMark, tables) and the text between them.

    Code, addresses of links and images, and front matter in YAML, TOML or JSON do not change. HTML
    is read as HTML. The document is parsed as a whole.
    """
    document = "".join(text)
    head = HEAD.match(document)
    position = head.end() if head else 0
    yield document[:position]
    ends = [position + match.end() for match in LINE_END.finditer(document[position:])]
    lines = [position, *ends, *[len(document)] * 2]
    in_cell = False
    for token in _parser().parse(document[position:]):
        start, end = (lines[number] for number in token.map or (0, 0))
        if token.map and token.type == "html_block":
            yield document[position:start]
            yield from _html_block(document[start:end], token.content, reading)
            position = end
        elif token.map and token.type == "inline":
            if in_cell:
                block = _located_cell(document, token.content, max(start, position), end)
            else:
                block = _located(document, token, lines)
            if block is not None and block.offset(0) >= position:
                yield document[position : block.offset(0)]
                pieces = _pieces(block, token, reading)
                yield from sentences(pieces, reading, _escapes(pieces), marker=MARKER)
                position = block.offset(len(block.content))
        in_cell = token.type in ("th_open", "td_open")
    yield document[position:]


def _html_block(text: str, content: str, reading: Reading) -> Iterator[Part]:
    """Yield the parts of a block of HTML; a block quote's `>` is part of the line end before it."""
    marks, lines = [], []
    for line, parsed in zip(LINE.findall(text), content.split("\n"), strict=False):
        begin = line.rstrip("\r\n").rfind(parsed.strip(" \t\r"))
        marks.append(line[:begin] if ">" in line[:begin] else "")
        lines.append(line.removeprefix(marks[-1]))
    if not any(marks):
        yield from read_html([text], reading)
        return
    yield marks[0]
    yield from read_tokens(_with_marks(raw_tokens(lines), iter(marks[1:])), reading)


def _with_marks(tokens: Iterable[RawToken], marks: Iterator[str]) -> Iterator[RawToken]:
    """Yield tokens of HTML, with a block quote's marks inserted after each line end."""
    for token in tokens:
        parts = [
            part + next(marks, "") if LINE_END.fullmatch(part) else part
            for part in LINE_OR_END.findall(token.raw)
        ]
        if token.kind not in TEXT:
            yield token._replace(raw="".join(parts))
            continue
        for part in parts:
            if LINE_END.match(part):
                yield RawToken(part, token.kind, " ", "", piece=Piece(part, " ", Role.LINE))
            else:
                yield token._replace(raw=part, data=part if len(parts) > 1 else token.data)


@functools.cache
def _parser() -> MarkdownIt:
    """A parser that records the span of each inline token."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.disable(["text_join", "fragments_join"])
    parser.inline.ruler.before("escape", "math", _math)
    for name, pattern in (("footnote", FOOTNOTE), ("alert", ALERT)):
        parser.inline.ruler.before("escape", name, functools.partial(_match, pattern, name))
    interrupted = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("fence", "math_block", _math_block, {"alt": interrupted})
    parser.block.ruler.before("reference", "footnote_text", _footnote_text, {"alt": interrupted})
    for rule in parser.inline.ruler.__rules__:
        rule.fn = _recording_spans(rule.fn)
    return parser


def _math(state: StateInline, silent: bool) -> bool:
    """A rule for `$x^2$` and `$$x^2$$`, which do not change."""
    match = MATH.match(state.src, state.pos) if state.src[state.pos] == "$" else None
    before = state.src[state.pos - 1 : state.pos]
    if match is None or before.isalnum() or before == "$" or PLAIN_WORD.search(match[0]):
        return False
    if not silent:
        state.push("math", "", 0).content = match[0].strip("$")
    state.pos = match.end()
    return True


def _match(pattern: re.Pattern[str], name: str, state: StateInline, silent: bool) -> bool:
    """A rule for a pattern that begins with a bracket."""
    match = pattern.match(state.src, state.pos) if state.src[state.pos] == "[" else None
    if match is None:
        return False
    if not silent:
        state.push(name, "", 0)
    state.pos = match.end()
    return True


def _footnote_text(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule for a footnote: the first line, and the indented text below it."""
    match = FOOTNOTE_TEXT.match(_line(state, first))
    if match is None or state.parentType == "footnote" or state.is_code_block(first):
        return False
    if silent:
        return True
    before = state.bMarks[first], state.tShift[first], state.sCount[first], state.parentType
    state.bMarks[first] += state.tShift[first] + match.end()
    state.blkIndent += FOOTNOTE_INDENT
    state.tShift[first], state.sCount[first] = 0, state.blkIndent
    state.parentType = "footnote"
    state.md.block.tokenize(state, first, end)
    state.blkIndent -= FOOTNOTE_INDENT
    state.bMarks[first], state.tShift[first], state.sCount[first], state.parentType = before
    return True


def _math_block(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """A rule for the lines from `$$` to `$$`, which do not change."""
    if not _line(state, first).startswith("$$") or state.is_code_block(first):
        return False
    for number in range(first, min(end, first + MAX_LINES)):
        line = _line(state, number).strip()
        if not line or state.sCount[number] < state.blkIndent:
            return False
        if line.endswith("$$") and (number > first or len(line) > 4):
            if not silent:
                state.push("math_block", "", 0).map = [first, number + 1]
                state.line = number + 1
            return True
    return False


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _recording_spans(rule: InlineRule) -> InlineRule:
    """Make a rule record the span of each token that it creates."""

    def noting(state: StateInline, silent: bool) -> bool:
        start = state.pos
        before = len(state.tokens)
        is_found = rule(state, silent)
        if is_found and not silent:
            _note(state, state.tokens[before:], start)
        return is_found

    return noting


def _note(state: StateInline, made: Sequence[InlineToken], start: int) -> None:
    """Record the spans of the tokens that a rule has created, from `start` on."""
    end = state.pos
    new = [token for token in made if SPAN not in token.meta]
    marks = [token for token in new if token.type != "text"]
    if new and not marks:  # emphasis delimiters begin as texts; the last one ends at `end`
        for token in reversed(new):
            if end > start:
                token.meta[SPAN] = (end - len(token.content), end)
                end -= len(token.content)
    elif len(marks) == 2 and marks[0].info != "auto":  # a link
        position = state.pos
        state.pos = start
        label_end = state.md.helpers.parseLinkLabel(state, start, True)
        state.pos = position
        marks[0].meta[SPAN] = (start, start + 1)
        marks[1].meta[SPAN] = (label_end, end)
        marks[1].meta[LABEL] = state.src[start + 1 : label_end]
    else:
        for token in marks:
            token.meta[SPAN] = (start, end)


def _located(text: str, token: InlineToken, lines: Sequence[int]) -> Block | None:
    """Find a paragraph in the document; None if its lines differ from those that were parsed."""
    content_starts = []
    text_starts = []
    position = 0
    for number, line in enumerate(token.content.split("\n"), start=(token.map or [0])[0]):
        words = line.lstrip(" \t")
        offset = text.rfind(words, lines[number], lines[number + 1])
        if offset < 0:
            return None
        content_starts.append(position)
        text_starts.append(offset - (len(line) - len(words)))
        position += len(line) + 1
    return Block(text, token.content, content_starts, text_starts)


def _located_cell(text: str, content: str, start: int, end: int) -> Block | None:
    r"""Find a table cell between two positions; the document writes its `|` as `\|`."""
    begin = text.find(content.replace("|", "\\|"), start, end)
    if begin < 0:
        return None
    starts = [0, *(match.end() for match in re.finditer(r"\|", content))]
    return Block(text, content, starts, [begin + offset + n for n, offset in enumerate(starts)])


def _escapes(pieces: Sequence[Piece]) -> dict[str, str]:
    """Escapes with a backslash for the special characters that a paragraph does not show."""
    shown = "".join(piece.raw for piece in pieces if piece.role is Role.TEXT)
    return {character: "\\" + character for character in SPECIAL if character not in shown}


def _pieces(block: Block, token: InlineToken, reading: Reading) -> list[Piece]:
    """The inline tokens of a paragraph as pieces; joining them gives the paragraph."""
    pieces: list[Piece] = []
    position = 0
    for child, (start, end) in _with_spans(token):
        if start < position:
            continue  # the end of an address that is copied as a whole
        text = block.content[position:start]
        if child.type in ("softbreak", "hardbreak"):
            text = text.rstrip(" ")
            start = position + len(text)
        pieces += _texts(block, position, position + len(text))
        piece = _piece(child, block.raw(start, end))
        if reading.attributes and child.type in ("image", "link_close"):
            piece = piece._replace(within=tuple(_seen_parts(piece.raw, reading)))
        pieces.append(piece)
        position = end
    pieces += _texts(block, position, len(block.content))
    return with_scripts(_with_signs(list(_with_elements(pieces, reading))))


def _seen_parts(raw: str, reading: Reading) -> Iterator[Part]:
    """Yield the parts of an image or of the end of a link, its visible text as sentences."""
    position = 0
    for match in SEEN.finditer(raw):
        yield raw[position : match.start()]
        yield from sentences([Piece(match[0], match[0])], reading, IN_SEEN, keeps_spaces=True)
        position = match.end()
    if position:
        yield raw[position:]


def _with_elements(pieces: Iterable[Piece], reading: Reading) -> Iterator[Piece]:
    """Yield pieces, with HTML tags read as HTML. A tag that ends a paragraph becomes a line end."""
    tokens = (_token(piece) for piece in pieces if piece.raw)
    for token, piece in read_pieces(tokens, reading):
        if piece.role is Role.COPY or is_of_a_line(token):
            yield piece
        else:
            yield Piece(piece.raw, "\n", Role.LINE)


def _token(piece: Piece) -> RawToken:
    """A piece as a token of HTML."""
    if piece.name == "html":
        tokens = list(raw_tokens([piece.raw]))
        if len(tokens) == 1:
            return tokens[0]
    kind = Token.CHARACTERS if piece.role is Role.TEXT else Token.COMMENT
    return RawToken(piece.raw, kind, piece.text, "", piece=piece)


def _texts(block: Block, start: int, end: int) -> Iterator[Piece]:
    """Yield the words between two positions; each `|` begins a piece."""
    for match in re.finditer(r"\||[^|]+", block.content[start:end]):
        yield Piece(block.raw(start + match.start(), start + match.end()), match[0])


def _with_signs(pieces: list[Piece]) -> list[Piece]:
    """Protect signs that follow a backslash.

    Signs beside a word become points, other signs become copies.
    """
    behind = ""
    texts_behind = []
    for piece in reversed(pieces):
        texts_behind.append(behind)
        behind = (piece.text if not _is_sign(piece) else "")[:1] or behind
    before = ""
    protected_pieces = []
    for piece, after in zip(pieces, reversed(texts_behind), strict=True):
        if _is_sign(piece):
            protected_pieces.append(_sign(piece, before, after))
        else:
            before = piece.text[-1:] or before
            protected_pieces.append(piece)
    return protected_pieces


def _is_sign(piece: Piece) -> bool:
    return len(piece.raw) == 2 and piece.raw[0] == "\\" and piece.text in SIGNS


def _sign(sign: Piece, before: str, after: str) -> Piece:
    if (before.isalnum() and after.isalnum()) or (sign.text in "$+#" and after.isdigit()):
        return sign  # a part of a word, or of a number
    if before.isalnum() or after.isalnum():
        return Piece(sign.raw, "", Role.POINT)
    return Piece(sign.raw, sign.text, Role.COPY)


def _with_spans(token: InlineToken) -> Iterator[tuple[InlineToken, Spans]]:
    """Yield the inline tokens that have a span, with both halves of ** as one token."""
    children = [child for child in token.children or () if SPAN in child.meta]
    are_empty = [child.type == "text" and not child.content for child in children]
    skip = False
    for n, child in enumerate(children):
        start, end = child.meta[SPAN]
        if skip or are_empty[n]:
            skip = False
            continue
        if child.nesting == 1 and n and are_empty[n - 1] and children[n - 1].meta[SPAN][1] == start:
            start = children[n - 1].meta[SPAN][0]
        after = children[n + 1] if n + 1 < len(children) and are_empty[n + 1] else None
        if child.nesting == -1 and after is not None and after.meta[SPAN][0] == end:
            end = after.meta[SPAN][1]
            skip = True
        yield child, (start, end)


def _piece(token: InlineToken, raw: str) -> Piece:
    """One inline token as a piece."""
    if token.type in ("softbreak", "hardbreak"):
        return Piece(raw, " ", Role.LINE)
    if token.type in ("code_inline", "math"):
        return Piece(raw, token.content, Role.COPY)
    if token.type == "alert":
        return Piece(raw, "\n", Role.LINE)  # not part of the following sentence
    if token.type == "link_open" and token.info == "auto":
        return Piece(raw, raw[1:-1], Role.COPY)
    if token.type.startswith("text"):
        return Piece(raw, token.content)
    reworded = ""
    if token.type == "link_close" and raw in ("]", "][]"):
        reworded = f"][{token.meta[LABEL]}]"  # the text was also the name of an address
    name = token.type.removesuffix("_open").removesuffix("_close")
    if name == "html_inline":
        name = "html"
    else:
        name = (EMPHASIS if name in ("em", "strong", "s") else "markdown ") + name
    roles = {1: Role.OPEN, 0: Role.POINT, -1: Role.CLOSE}
    return Piece(raw, "", roles[token.nesting], name, reworded=reworded)
