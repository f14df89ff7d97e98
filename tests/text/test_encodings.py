"""Documents in declared encodings."""

from xml.etree import ElementTree

import pytest

from tfformer.cli.terminal import input_document
from tfformer.text.encodings import declared_encoding

UMLAUT = "ü and “€”"


@pytest.mark.parametrize(
    ("head", "format", "read", "write"),
    [
        ('<meta charset="us-ascii">', "html", "cp1252", "ascii"),
        ('<META http-equiv=x content="text/html; charset=iso-8859-1">', "html", "cp1252", None),
        ('<meta name=d content="a charset=big5 b">', "html", "utf-8", "utf-8"),
        ('<meta name="charset=big5" charset="koi8-r" />', "html", "koi8-r", "koi8-r"),
        ("<meta charset=utf-8>", "html", "utf-8", "utf-8"),
        ("<meta charset=shift_jis>", "html", "cp932", "shift_jis"),
        ("<meta charset=utf-16>", "html", "utf-8", "utf-8"),
        ("<meta charset=no-such>", "html", "utf-8", "utf-8"),
        ("<meta charset=hex>", "html", "utf-8", "utf-8"),
        ("<meta charset=undefined>", "html", "utf-8", "utf-8"),
        ("<meta charset=x-user-defined>", "html", "utf-8", "utf-8"),
        ("<meta charset=unicode_escape>", "html", "utf-8", "utf-8"),
        ('<?xml version="1.0" encoding="idna"?>', "xml", "utf-8", "utf-8"),
        ("<meta charset=x-sjis>", "html", "cp932", "cp932"),
        ("<meta charset=windows-874>", "html", "cp874", "cp874"),
        ("<meta charset=unicode>", "html", "utf-8", "utf-8"),
        ("<!-- <meta charset=big5> --><meta charset=koi8-r>", "html", "koi8-r", "koi8-r"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?>', "xml", "iso8859-1", "iso8859-1"),
        ('<?xml version="1.0"?>', "xml", "utf-8", "utf-8"),
        ("<meta charset=latin1>", "text", "utf-8", "utf-8"),
    ],
)
def test_the_declaration_decides(head, format, read, write):
    found = declared_encoding(head.encode(), format)
    assert found.read == read
    assert found.write == (write or found.write)


def test_a_document_is_read_as_it_declares_and_can_be_read_by_a_parser_when_written(tmp_path):
    file = tmp_path / "a.xml"
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'
    file.write_bytes(text.encode("latin-1"))
    parts, encoding = input_document(str(file), "xml")
    written = "".join(parts).replace("é", UMLAUT).encode(encoding, "xmlcharrefreplace")
    assert ElementTree.fromstring(written).text == UMLAUT


def test_bytes_that_are_not_in_the_declared_encoding_are_refused_by_their_place(tmp_path):
    file = tmp_path / "a.xml"
    file.write_bytes(b'<?xml version="1.0" encoding="us-ascii"?>\xfc')
    with pytest.raises(ValueError, match=r"a.xml declares ascii, but byte 42 is not valid in this"):
        input_document(str(file), "xml")
