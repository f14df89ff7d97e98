"""A model of two directions, English to German and back, which tags before the sentences choose."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu
from support.number_corpus import NUMBERS, write_number_corpus

from tfformer.cli.main import main
from tfformer.config import Config
from tfformer.data.augmentation import augmented
from tfformer.data.tokenizers import Tokenizer, Tokenizers
from tfformer.engines import open_engine
from tfformer.export.pipeline import export_model
from tfformer.inference.alignment import alignments
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run
from tfformer.training.train import train

SAMPLE = Path(__file__).parents[2] / "export" / "on_device" / "sample.py"
TAGS = ["<de>", "<en>"]
ENGLISH, GERMAN = "one two three", "eins zwei drei"


def recipe(folder, **data):
    def corpora(split):
        files = [f"{split}.en", f"{split}.de"]
        return [
            {"text": files, "tag": "<de>", "languages": ["en", "de"]},
            {"text": files[::-1], "tag": "<en>", "languages": ["de", "en"]},
        ]

    return {
        "model": {"num_layers": 1, "d_model": 32, "num_heads": 2, "d_ff": 64, "dropout": 0.0},
        "tokenizer": {"vocab_size": 47, "normalization": "nfkc"},  # a line end would be a piece
        "data": {
            "train": corpora("train"),
            "valid": corpora("valid"),
            "folder": str(folder),
            "tags": TAGS,
            "temperature": 5.0,
            "max_length": 40,
            "batch_tokens": 512,
            **data,
        },
        "training": {
            "epochs": 40,
            "schedule": "inverse_sqrt",
            "learning_rate": 0.02,
            "warmup_steps": 50,
            "validate_every": 40,
        },
    }


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    write_number_corpus(folder, {"train": 600, "valid": 40}, greatest=10)
    return folder


@pytest.fixture(scope="module")
def two_ways(numbers):
    """A run trained on 600 lines of numbers in both directions."""
    train(Config.from_dict(recipe(numbers)), numbers / "run")
    return numbers / "run"


@pytest.fixture(scope="module")
def exports(two_ways, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    return {form: export_model(two_ways, folder / form, form) for form in ("saved_model", "litert")}


def expected(tag, lines):
    """Translate the numbers word by word into the language of a tag."""
    words = {"<de>": dict(zip(NUMBERS["en"], NUMBERS["de"], strict=True))}
    words["<en>"] = {german: english for english, german in words["<de>"].items()}
    return [" ".join(words[tag][word] for word in line.split()) for line in lines]


def test_the_tag_chooses_the_language_in_every_artifact(two_ways, exports, numbers):
    for tag, language in (("<de>", "en"), ("<en>", "de")):
        lines = (numbers / f"valid.{language}").read_text(encoding="utf-8").splitlines()
        tagged = [f"{tag} {line}" for line in lines]
        translations = Translator.load(two_ways).translate(tagged, beam_size=1)
        words = " ".join(translations).split()
        assert set(words) <= set(NUMBERS[tag.strip("<>")])
        assert sum(map(str.__eq__, translations, expected(tag, lines))) >= 30  # of 40
        for version in exports.values():
            with open_engine(version) as engine:
                assert engine.tags == tuple(TAGS)
                assert engine.translate(tagged, beam_size=1) == translations


def test_languages_choose_the_tag(two_ways, tmp_path, capsys):
    translator = Translator.load(two_ways, "de", "en")
    assert translator.translate([GERMAN, "", " "]) == [ENGLISH, "", ""]
    assert (translator.language, translator.target_language) == ("de", "en")
    assert Run.open(two_ways).directions == [("en", "de"), ("de", "en")]
    (tmp_path / "text").write_text(f"{GERMAN}\n", encoding="utf-8")
    command = ["translate", str(two_ways), "--input", str(tmp_path / "text"), "--languages"]
    assert main([*command, "de,en"]) == 0
    assert capsys.readouterr().out == f"{ENGLISH}\n"
    assert main([*command, "fr,en"]) == 2
    assert "run does not translate fr to en; choose one of en to de, de to en" in (
        capsys.readouterr().err
    )


def test_languages_of_a_run_whose_tags_name_none(tmp_path):
    """Its own languages change nothing; others are refused."""
    tokenizer = Tokenizer.train([f"{ENGLISH} {GERMAN}"] * 20, 22, symbols=["<du>", "<Sie>"])
    data = {"tags": ["<du>", "<Sie>"], "languages": ["en", "de"]}
    config = Config.from_dict({"data": data})
    run = Run.create(tmp_path, config, Tokenizers(tokenizer, tokenizer))
    assert run.with_languages("en", "de") is run
    with pytest.raises(ValueError, match="no tag '<fr>' for this language, only <du>, <Sie>; lea"):
        run.with_languages("en", "fr")


def test_an_export_may_have_one_direction(two_ways, tmp_path):
    languages = {"source_language": "de", "target_language": "en"}
    version = export_model(two_ways, tmp_path, "litert", **languages)
    with open_engine(version) as engine:
        assert engine.languages == ["de", "en"]
        assert (engine.tags, engine.manifest["directions"]) == ((), [])
        assert engine.translate([GERMAN, ""], beam_size=1) == [ENGLISH, ""]
    command = [sys.executable, str(SAMPLE), str(version)]
    lines = f"{GERMAN}\n\n{GERMAN}"
    done = subprocess.run(command, input=lines, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == f"{ENGLISH}\n\n{ENGLISH}\n"


def test_a_tag_is_no_word_of_an_alignment(two_ways):
    """With the tag in the text it is word 0; with --languages words count as in the text."""
    in_text = alignments(Translator.load(two_ways), [f"<de> {ENGLISH}"], [GERMAN])[0]
    chosen = alignments(Translator.load(two_ways, "en", "de"), [ENGLISH], [GERMAN])[0]
    assert chosen == tuple((source - 1, target) for source, target in in_text if source)
    assert {source for source, _ in chosen} <= {0, 1, 2}


def test_a_tag_before_a_whole_text_is_before_each_of_its_sentences(two_ways):
    translator = Translator.load(two_ways)
    text = f"{GERMAN}.\n\n<p>{GERMAN}</p>"
    chosen = Translator.load(two_ways, "de", "en").translate_text(text, "html")
    assert ENGLISH in chosen
    assert translator.translate_text(f"<en> {text}", "html") == chosen


def test_evaluate_scores_each_tag(two_ways, numbers, tmp_path, capsys):
    sides = {side: (numbers / f"valid.{side}").read_text("utf-8").splitlines() for side in NUMBERS}
    sources = [f"<de> {line}" for line in sides["en"]] + [f"<en> {line}" for line in sides["de"]]
    references = [*sides["en"], *sides["en"]]  # the first half is in the wrong language
    for name, lines in (("source", sources), ("reference", references)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = [f"--{name}={tmp_path / name}" for name in ("source", "reference")]
    assert main(["evaluate", str(two_ways), *files]) == 0
    lines = capsys.readouterr().out.splitlines()
    measured = json.loads(lines[-1])
    translations = Translator.load(two_ways).translate(sources)
    for number, tag in enumerate(TAGS):
        half = slice(40 * number, 40 * (number + 1))
        bleu = sacrebleu.corpus_bleu(translations[half], [references[half]]).score
        assert measured["tags"][tag]["bleu"] == pytest.approx(bleu)
        assert f"{tag}: BLEU {bleu:.2f}, chrF" in "\n".join(lines)
    assert measured["tags"]["<de>"]["bleu"] < 10 < 90 < measured["tags"]["<en>"]["bleu"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"tags": [*TAGS, "<fr>"]},
            "data.tags has <fr>, but no row of data.train has this tag; add",
        ),
        (
            {"train": "bad.tsv"},
            "bad.tsv, line 1: the third column is '<fr>', which is not in data.ta",
        ),
        ({"train": "contains.tsv"}, "contains.tsv, row 1: the text contains <de>, which is one of"),
        ({"tags": [*TAGS, "<s>"]}, "the symbol '<s>' must be a string without spaces other than"),
    ],
)
def test_wrong_tags_are_refused_in_one_line(numbers, tmp_path, capsys, changes, message):
    (numbers / "bad.tsv").write_text("one\tun\t<fr>\n")
    (numbers / "contains.tsv").write_text("<de> one\teins\n")
    (tmp_path / "recipe.yaml").write_text(json.dumps(recipe(numbers, **changes)))
    command = ["train", str(tmp_path / "recipe.yaml"), "--run-dir", str(tmp_path / "run")]
    assert main(command) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line]
    assert message in line


def test_a_vocabulary_without_the_tag_is_refused(two_ways, numbers, tmp_path):
    values = recipe(numbers, tags=[*TAGS, "<fr>"])
    with pytest.raises(
        ValueError, match="the vocabulary lacks the tag <fr>; train a new one, with"
    ):
        train(Config.from_dict(values), tmp_path / "run", init_from=two_ways)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_tagged_tokenizer_encodes_like_a_tag_in_the_text(model_type):
    texts = [f"{ENGLISH} {GERMAN}"] * 20
    tokenizer = Tokenizer.train(texts, 22, model_type, symbols=TAGS)
    tagged = tokenizer.with_tag("<de>")
    draw = random.Random(1)
    lines = ["".join(draw.choices("one tw\tre  i<d>", k=draw.randint(1, 12))) for _ in range(200)]
    words = [line for line in lines if line.strip()]
    assert tagged.encode(words) == tokenizer.encode([f"<de> {line}" for line in words])
    assert tagged.encode(["", " "]) == [[], []]
    assert tagged.tokenize([*words, ""]).to_list() == [*tagged.encode(words), []]


def test_altered_copies_keep_their_tag():
    settings = Config.from_dict({"data": {"augment": {"upper": 1, "typos": 1}}}).data.augment
    rows = [("<Sie> Where are you?", "Wo sind Sie?"), ("<x> you", "du")]
    copies = list(augmented(rows, settings, 1, tags=["<Sie>"]))
    assert copies[1] == ("<Sie> WHERE ARE YOU?", "WO SIND SIE?")
    assert copies[2][0].startswith("<Sie> ")
    assert copies[4] == ("<X> YOU", "DU")
