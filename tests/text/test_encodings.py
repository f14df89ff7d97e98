"""Documents in declared encodings."""

import gzip
import os
import threading
import time
from xml.etree import ElementTree

import pytest

from tfformer.cli.terminal import input_document
from tfformer.text.encodings import declared_encoding

UMLAUT = "ü and “€”"


@pytest.mark.parametrize(
    ("head", "format", "read", "label"),
    [
        ('<meta charset="us-ascii">', "html", "cp1252", "ascii"),
        ('<META http-equiv=x content="; charset=iso-8859-1">', "html", "cp1252", "iso8859-1"),
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
def test_the_declaration_decides(head, format, read, label):
    assert declared_encoding(head.encode(), format) == (read, label)


def test_a_document_is_read_as_it_declares_and_can_be_read_by_a_parser_when_written(tmp_path):
    file = tmp_path / "a.xml"
    text = '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'
    file.write_bytes(text.encode("latin-1"))
    with input_document(str(file), "xml") as (parts, encoding):
        written = "".join(parts).replace("é", UMLAUT).encode(encoding, "xmlcharrefreplace")
    assert ElementTree.fromstring(written).text == UMLAUT


def test_bytes_that_are_not_in_the_declared_encoding_are_refused_by_their_place(tmp_path):
    file = tmp_path / "a.xml"
    file.write_bytes(b'<?xml version="1.0" encoding="us-ascii"?>\xfc')
    with (
        pytest.raises(ValueError, match=r"a.xml declares ascii, but byte 42 is not valid in this"),
        input_document(str(file), "xml"),
    ):
        pass


@pytest.mark.parametrize(
    ("label", "script"),
    [
        ("us-ascii", b"'\xfc'"),
        ("iso-8859-1", b"'\x93 \x94 \x80'"),  # quotation marks and the euro in windows-1252
        ("gb2312", "'镕'".encode("gbk")),
        ("shift_jis", b"'\x81\x60'"),  # a tilde for browsers, a wave dash for Python
    ],
)
def test_scripts_with_characters_beyond_the_label_keep_their_bytes(label, script, tmp_path):
    page = f'<meta charset="{label}"><script>'.encode() + script + b"</script>"
    (tmp_path / "a.html").write_bytes(page)
    with input_document(str(tmp_path / "a.html"), "html") as (parts, encoding):
        assert "".join(parts).encode(encoding, "xmlcharrefreplace") == page


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1"])
def test_a_document_arrives_whole_and_decoded_from_a_pipe_or_an_archive(charset, tmp_path):
    page = f'<html>\n<head><meta charset="{charset}">\n' + "Grüße aus Köln\n" * 5000
    packed = tmp_path / "a.html.gz"
    packed.write_bytes(gzip.compress(page.encode(charset)))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write_slowly():
        with pipe.open("wb", buffering=0) as end:
            end.write(b"<html>")
            time.sleep(0.2)
            end.write(page.encode(charset).removeprefix(b"<html>"))

    writer = threading.Thread(target=write_slowly, daemon=True)
    writer.start()
    for file in (packed, pipe):
        with input_document(str(file), "html") as (parts, _):
            assert "".join(parts) == page
    writer.join()
