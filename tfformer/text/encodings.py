"""The encoding that a page or an XML document declares."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

import webencodings

HEAD = 1024  # bytes in which HTML declares its encoding
XML = re.compile(rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)")
COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
ASCII = r"\u0041.xn--tda."  # which unicode_escape, idna and utf-16 read otherwise
# An attribute of its own, or a part of the attribute `content` of a tag with `http-equiv`.
META = re.compile(
    rb"<meta(?:[^>\"']|\"[^\"]*\"|'[^']*')*?[\s/]charset\s*=\s*[\"']?\s*([\w.:-]+)",
    re.IGNORECASE,
)
PRAGMA = re.compile(
    rb"<meta\b(?=[^>]*\bhttp-equiv\b)[^>]*?\bcharset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE
)


DECLARATIONS = {"html": (META, PRAGMA, XML), "xml": (XML,)}


class Encoding(NamedTuple):
    """How a document is read and written."""

    read: str = "utf-8"  # the codec that reads it
    label: str = "utf-8"  # the codec that the document names

    def codec_for(self, text: str) -> str:
        """Return the codec that writes a document whose input was `text`.

        Characters outside it become references such as `&#252;`. Scripts and styles cannot contain
        references, so the codec covers all characters of the input.
        """
        try:
            text.encode(self.label)
        except UnicodeEncodeError:  # browsers read more than the label says
            return self.read
        return self.label


def head_size(format: str) -> int:
    """Return the number of bytes in which a document says how it is encoded."""
    return HEAD if format in DECLARATIONS else len(codecs.BOM_UTF8)


def declared_encoding(head: bytes, format: str) -> Encoding:
    """Return the encoding that the first 1,024 bytes of a document declare, or UTF-8.

    Only "html" and "xml" can declare an encoding; a byte order mark applies in any format.
    """
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Encoding("utf-16", "utf-16")
    if head.startswith(codecs.BOM_UTF8):
        return Encoding()
    for declaration in DECLARATIONS.get(format, ()):
        if match := declaration.search(COMMENT.sub(b"", head[:HEAD])):
            return _encoding(match[1].decode("ascii"), format)
    return Encoding()


def _encoding(label: str, format: str) -> Encoding:
    standard = webencodings.lookup(label) if format == "html" else None
    # Browsers read us-ascii and latin-1 as windows-1252, and know labels such as "x-sjis".
    read = standard.codec_info.name if standard else label
    if not _reads_ascii(read):  # false, as the declaration is in ASCII
        return Encoding()
    named = label if _reads_ascii(label) else read
    return Encoding(codecs.lookup(read).name, codecs.lookup(named).name)


def _reads_ascii(name: str) -> bool:
    """Whether Python has this encoding, and ASCII is a part of it, unlike utf-16, idna and hex."""
    try:
        return ASCII.encode().decode(name) == ASCII
    except (LookupError, UnicodeError):
        return False
