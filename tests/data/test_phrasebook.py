"""The built-in phrasebook: its splits, and the files that it writes."""

import os
from collections import Counter

import pytest

from tfformer.data import phrasebook
from tfformer.data.phrasebook import SPLITS

SMALL_TALK = {
    "Hello.": "Hallo.",
    "Hello": "Hallo",
    "Good morning.": "Guten Morgen.",
    "You're welcome.": "Gern geschehen.",
    "How are you?": "Wie geht es Ihnen?",
    "I love you.": "Ich liebe dich.",
}


@pytest.fixture(scope="module")
def corpus():
    return {split: phrasebook.pairs(split) for split in SPLITS}


def test_sizes(corpus):
    assert {split: len(pairs) for split, pairs in corpus.items()} == {
        "train": 33640,
        "valid": 1300,
        "test": 1300,
    }


def test_small_talk_is_trained_sixteen_times_and_never_tested(corpus):
    train = Counter((pair.source, pair.target) for pair in corpus["train"])
    for phrase in SMALL_TALK.items():
        assert train[phrase] == 16, phrase
    for split in ("valid", "test"):
        assert "small talk" not in {pair.family for pair in corpus[split]}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("I am tired.", "Ich bin müde."),
        ("Do you speak English?", "Sprechen Sie Englisch?"),
        ("Could you help me, please?", "Könnten Sie mir bitte helfen?"),
        ("Where is the station?", "Wo ist der Bahnhof?"),
    ],
)
def test_a_first_try_is_trained(corpus, source, target):
    assert (source, target) in {(pair.source, pair.target) for pair in corpus["train"]}


def test_an_unknown_split_is_named_with_the_known_ones():
    with pytest.raises(
        ValueError, match="unknown split 'dev'; the phrasebook has train, valid, test"
    ):
        phrasebook.pairs("dev")


def test_write(tmp_path, corpus):
    paths = phrasebook.write(tmp_path / "corpus")
    assert sorted(path.name for path in paths) == sorted(os.listdir(tmp_path / "corpus"))
    for split in SPLITS:
        for language, side in (("en", "source"), ("de", "target")):
            text = (tmp_path / "corpus" / f"{split}.{language}").read_bytes().decode("utf-8")
            assert text == "".join(getattr(pair, side) + "\n" for pair in corpus[split])


def test_write_leaves_what_is_there_alone(tmp_path):
    (tmp_path / "valid.de").write_text("mine")
    with pytest.raises(FileExistsError, match=r"valid\.de already exists .* choose another folder"):
        phrasebook.write(tmp_path)
    assert os.listdir(tmp_path) == ["valid.de"]
    assert (tmp_path / "valid.de").read_text() == "mine"


def test_what_a_kill_has_left_is_completed(tmp_path):
    paths = phrasebook.write(tmp_path)
    texts = {path: path.read_bytes() for path in paths}
    for path in paths[3:]:
        path.unlink()
    with pytest.warns(UserWarning, match="already contained 3 of the phrasebook's 6 files"):
        assert phrasebook.write(tmp_path) == paths
    assert {path: path.read_bytes() for path in paths} == texts


def test_a_whole_phrasebook_is_not_written_again(tmp_path):
    phrasebook.write(tmp_path)
    with pytest.raises(FileExistsError, match=r"already contains the complete phrasebook; choose"):
        phrasebook.write(tmp_path)
