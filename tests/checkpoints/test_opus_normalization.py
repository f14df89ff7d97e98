"""OPUS-MT's rules for text, compared with Unicode's tables and hand-written examples."""

import re
import unicodedata

import pytest
from support.marian_checkpoints import write_marian_model

from tfformer.checkpoints.foreign_checkpoint import INVISIBLE, OPUS_MT
from tfformer.checkpoints.import_model import import_model
from tfformer.run_directory import Run


def rewritten(text):
    for pattern, replacement in OPUS_MT:
        text = re.sub(pattern, replacement, text)
    return text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("我，你、他。", "我,你,他."),
        ("”a“ ’b’ （c）！", "\"a\" 'b' (c)!"),
        ("２３４５６７８９０ and １", '234567890 and "'),
        ("a．   b… c━d ％", "a. b... c-d %"),
        ("【x】〈y〉《z》「w」：；？～", '[x]<y>"z""w":;?~'),
        ("a\tb\u200bc\u00add", "a b c d"),
        ("  a    b  ", "a b"),
        ("\n", ""),
        ("Größe, ‘x’ – „y“", "Größe, ‘x' – „y\""),
    ],
)
def test_a_text_is_rewritten_as_opus_prepares_it(text, wanted):
    assert rewritten(text) == wanted


def test_the_invisible_characters_are_those_of_unicode():
    """Control, format and private-use characters below 65,536.

    Unassigned ones depend on the version.
    """
    invisible = {c for c in map(chr, range(0x10000)) if re.match(INVISIBLE, c)}
    categories = {character: unicodedata.category(character) for character in invisible}
    assert set(categories.values()) <= {"Cc", "Cf", "Co", "Cn"}
    wanted = {c for c in map(chr, range(0x10000)) if unicodedata.category(c) in ("Cc", "Cf", "Co")}
    assert wanted - invisible <= {chr(0x8E2), chr(0x890), chr(0x891)}


def test_an_imported_run_keeps_the_rules(tmp_path):
    folder = write_marian_model("shared", tmp_path)
    source = {
        normalize: Run.open(
            import_model(folder, tmp_path / normalize, normalize=normalize)
        ).tokenizers.source
        for normalize in ("none", "opus-mt")
    }
    texts = ["we see the dog ，  thank you．", ""]
    prepared = [rewritten(text) for text in texts]
    assert source["opus-mt"].encode(texts) == source["none"].encode(prepared)
    assert source["opus-mt"].encode(texts) != source["none"].encode(texts)


def test_unknown_rules_are_refused(tmp_path):
    with pytest.raises(ValueError, match="normalize='moses' is not known; choose one of 'none'"):
        import_model(tmp_path, tmp_path / "run", normalize="moses")
