"""The encoding that a page or an XML document declares."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

import webencodings

HEAD = 1024  # bytes in which HTML declares its encoding
XML = re.compile(rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)")
COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
META = re.compile(rb"<meta\b[^>]*?\bcharset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)


class Encoding(NamedTuple):
    """How a document is read and written."""

    read: str = "utf-8"  # the codec that reads it
    write: str = "utf-8"  # the codec that writes it; other characters become `&#252;`


def declared_encoding(head: bytes, format: str) -> Encoding:
    """Return the encoding that the first 1,024 bytes of a document declare, or UTF-8.

    Only "html" and "xml" can declare an encoding; a byte order mark applies in any format.
    """
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Encoding("utf-16", "utf-16")
    declarations = {"html": (META, XML), "xml": (XML,)}.get(format, ())
    if head.startswith(codecs.BOM_UTF8):
        return Encoding()
    for declaration in declarations:
        if match := declaration.search(COMMENT.sub(b"", head[:HEAD])):
            return _encoding(match[1].decode("ascii"), format)
    return Encoding()


def _encoding(label: str, format: str) -> Encoding:
    standard = webencodings.lookup(label) if format == "html" else None
    try:
        codec = codecs.lookup(label)
        "".encode(codec.name)  # LookupError for a codec that is no encoding, such as "hex"
    except LookupError:
        if standard is None:
            return Encoding()
        codec = standard.codec_info  # a label that only browsers know, such as "x-sjis"
    if codec.name.startswith(("utf-16", "utf-32")):  # false, because the declaration is in ASCII
        return Encoding()
    # Browsers read us-ascii and latin-1 as windows-1252.
    return Encoding(standard.codec_info.name if standard else codec.name, codec.name)
