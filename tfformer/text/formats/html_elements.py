"""Find the end of an HTML element, even if its end tag is omitted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

# Tags that end an open paragraph, according to the HTML standard.
BLOCK_TAGS = (
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr listing main menu nav ol p plaintext pre "
    "search section summary table ul xmp"
)
BLOCKS = frozenset(BLOCK_TAGS.split())
ITEMS = frozenset(["li"])
TERMS = frozenset(["dt", "dd"])
CELLS = frozenset(["td", "th"])
ROWS = frozenset(["tr"])
GROUPS = frozenset(["caption", "colgroup", "tbody", "tfoot", "thead"])
CHOICES = frozenset(["option", "optgroup"])
READINGS = frozenset(["rb", "rp", "rt", "rtc"])
# Elements whose end tag may be omitted, with the tags that end them.
ENDED_BY = {
    "p": BLOCKS | ITEMS | TERMS | CELLS | ROWS | GROUPS,
    "li": ITEMS,
    **dict.fromkeys(TERMS, TERMS),
    **dict.fromkeys(CELLS, CELLS | ROWS | GROUPS),
    **dict.fromkeys(ROWS, ROWS | GROUPS),
    **dict.fromkeys(GROUPS, GROUPS),
    "option": CHOICES,
    "optgroup": frozenset(["optgroup"]),
    **dict.fromkeys(READINGS, READINGS),
}
# Such a tag -> the elements that it ends.
ENDS = {
    tag: [name for name, tags in ENDED_BY.items() if tag in tags]
    for tag in frozenset().union(*ENDED_BY.values())
}
# Tag -> the elements inside which it cannot end an element that surrounds them.
WALLS = {
    **dict.fromkeys(BLOCKS, frozenset(["button", "object"])),
    **dict.fromkeys(ITEMS, frozenset(["ol", "ul", "menu", "dir"])),
    **dict.fromkeys(TERMS, frozenset(["dl"])),
    **dict.fromkeys(CELLS | ROWS | GROUPS, frozenset(["table"])),
    **dict.fromkeys(CHOICES, frozenset(["select", "datalist"])),
    **dict.fromkeys(READINGS, frozenset(["ruby"])),
}
# Elements whose end also ends the elements in them that have no end tag.
PARENTS = frozenset({"body", "html"} | BLOCKS - {"p"} | WALLS.keys() - {"p"}).union(*WALLS.values())
# A browser reopens these after the end of an element around them.
FORMATTING_TAGS = "a b big code em font i nobr s small strike strong tt u"
REOPENED = frozenset(FORMATTING_TAGS.split())


class OpenElement:
    """An element that is being read, with the open elements in it.

    Example:
        >>> item = OpenElement("li")
        >>> item.start("b"), item.start("li"), item.is_open
        (True, False, False)
    """

    def __init__(self, name: str) -> None:
        self._names: list[str] = []  # outermost first
        self._depths: dict[str, list[int]] = defaultdict(list)  # depths of each name
        self._open(name)

    @property
    def is_open(self) -> bool:
        """Whether the element has not ended yet."""
        return bool(self._names)

    def start(self, name: str, is_empty: bool = False) -> bool:
        """Read a start tag; false if the element ends before it.

        If `is_empty`, as for `<br>`, the tag opens no element.
        """
        while (depth := self._last(ENDS.get(name, ()))) > self._last(WALLS.get(name, ())):
            self._close(depth)
        if self.is_open and not is_empty:
            self._open(name)
            return True
        return self.is_open

    def end(self, name: str) -> bool:
        """Read an end tag; false if the element ends before it."""
        depth = self._last([name])
        if depth >= 0:
            self._close(depth)
            return True
        if self._ends_with(name):
            self._close(0)
        return self.is_open

    def _ends_with(self, parent: str) -> bool:
        """Whether the element ends at the end tag `parent` of an element around it."""
        first = self._names[0]
        if parent == "p":
            return first in READINGS or first not in PARENTS | REOPENED | ENDED_BY.keys()
        return parent in PARENTS and first not in REOPENED

    def _last(self, names: Iterable[str]) -> int:
        """The position of the innermost open element with one of the names, or -1."""
        return max((self._depths[name][-1] for name in names if self._depths.get(name)), default=-1)

    def _open(self, name: str) -> None:
        self._depths[name].append(len(self._names))
        self._names.append(name)

    def _close(self, depth: int) -> None:
        while len(self._names) > depth:
            self._depths[self._names.pop()].pop()
