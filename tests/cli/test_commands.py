"""The command line from the user's view: output, exit codes, and files that it must not change."""

import gzip
import html
import io
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import tensorflow as tf

from tfformer.cli import terminal
from tfformer.cli.main import main, program
from tfformer.data import phrasebook
from tfformer.data.tokenizers import Tokenizer
from tfformer.engines import engine
from tfformer.inference import Translation
from tfformer.inference import translator as translator_module
from tfformer.inference.translator import Translator
from tfformer.training import train as training

pytestmark = pytest.mark.usefixtures("verbs_share_models")


def refused(arguments: list, capsys) -> str:
    """Run a command that must exit with code 2 and one line; return the line."""
    assert main([str(argument) for argument in arguments]) == 2
    captured = capsys.readouterr()
    errors = [line for line in captured.err.splitlines() if not line.startswith("warning: ")]
    assert len(errors) == 1, captured.err
    assert errors[0].startswith("tfformer: ")
    return errors[0]


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    return [pair.source for pair in phrasebook.pairs("test")[:9]]


@pytest.mark.parametrize("name", program.commands)
def test_every_verb_shows_examples_of_itself(name, capsys):
    assert main([name, "--help"]) == 0
    examples = capsys.readouterr().out.split("Examples:\n")[1].splitlines()
    assert any(f"tfformer {name}" in line for line in examples)


def test_recipes_lists_every_file_with_its_first_line(capsys):
    assert main(["recipes"]) == 0
    printed = capsys.readouterr().out
    assert "phrasebook " in printed
    assert "multi30k-en-de " in printed
    assert "English to German" in printed


@pytest.mark.slow
def test_translate_keeps_order_and_blank_lines(tiny_run, translator, sentences, tmp_path, capsys):
    source, output = tmp_path / "in.en", tmp_path / "out.de"
    source.write_text("\n".join([sentences[0], "", *sentences[1:], "   "]) + "\n", encoding="utf-8")
    assert main(["translate", str(tiny_run), "--input", str(source), "--output", str(output)]) == 0
    expected = translator.translate(sentences)
    assert output.read_text(encoding="utf-8").split("\n") == [
        expected[0],
        "",
        *expected[1:],
        "",
        "",
    ]


@pytest.mark.slow
def test_translate_reads_standard_input_in_chunks(
    tiny_run, translator, sentences, monkeypatch, capsys
):
    monkeypatch.setattr(engine, "CHUNK", 2)
    typed = io.BytesIO("\n".join(sentences[:5]).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(typed))
    assert main(["translate", str(tiny_run), "--beam-size", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == translator.translate(sentences[:5], beam_size=1)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_page_is_translated_between_its_tags(tiny_run, translator, sentences, tmp_path, mark):
    """A byte order mark is preserved."""
    page, output = tmp_path / "page.html", tmp_path / "page.de.html"
    page.write_bytes(f"{mark}<p>{sentences[0]} {sentences[1]}\r\n<br><code>a</code></p>".encode())
    files = ["--input", str(page), "--output", str(output)]
    assert main(["translate", str(tiny_run), "--format", "html", *files]) == 0
    first, second = translator.translate(sentences[:2])
    expected = f"{mark}<p>{html.escape(first, quote=False)} {html.escape(second, quote=False)}\r\n"
    assert output.read_bytes().decode() == expected + "<br><code>a</code></p>"


def test_the_words_of_a_file_stay_as_they_are(tiny_run, tmp_path, capsys):
    (tmp_path / "keep.txt").write_text("Foo Bar\n\n", encoding="utf-8")
    source = tmp_path / "in.en"
    source.write_text("The animal Foo Bar is tired.\n", encoding="utf-8")
    files = ["--input", str(source), "--keep", str(tmp_path / "keep.txt")]
    assert main(["translate", str(tiny_run), *files]) == 0
    assert capsys.readouterr().out.count("Foo Bar") == 1


def test_the_terms_of_a_file_are_translated_as_it_says(tiny_run, tmp_path, capsys):
    (tmp_path / "terms.tsv").write_text("tired\tschlapp\nanimal\tZebra\ta note\n")
    source = tmp_path / "in.en"
    source.write_text("The Animal is tired.\n\nThe dog sleeps.\n")
    files = ["--input", str(source), "--glossary", str(tmp_path / "terms.tsv")]
    assert main(["translate", str(tiny_run), *files]) == 0
    printed = capsys.readouterr()
    first, blank, last = printed.out.splitlines()
    assert (first.count("Zebra"), first.count("schlapp"), blank) == (1, 1, "")
    assert "Zebra" not in last
    assert "inserted as they are, without inflection" in printed.err


def test_progress_is_told_within_a_chunk(tiny_run, translator, sentences, tmp_path, monkeypatch):
    """Portions of similar length are translated, and are written in the order of the input."""
    monkeypatch.setattr(engine, "PORTION", 2)
    counts = []
    monkeypatch.setattr(terminal.Progress, "advance", lambda self, count: counts.append(count))
    source = tmp_path / "in.en"
    source.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    output = tmp_path / "out.de"
    assert main(["translate", str(tiny_run), "--input", str(source), "--output", str(output)]) == 0
    assert counts == [2, 2, 2, 2, 1]
    expected = translator.translate(sentences)
    assert output.read_text(encoding="utf-8").splitlines() == expected


@pytest.mark.slow
def test_n_best_with_scores_prints_the_translators_own(
    tiny_run, translator, sentences, tmp_path, capsys
):
    source = tmp_path / "in.en.gz"
    source.write_bytes(gzip.compress((sentences[0] + "\n").encode()))
    arguments = ["--n-best", "3", "--scores", "--length-penalty", "0"]
    assert main(["translate", str(tiny_run), "--input", str(source), *arguments]) == 0
    expected = translator.n_best([sentences[0]], beam_size=3, length_penalty=0.0)[0][:3]
    assert capsys.readouterr().out.splitlines() == [f"{t.score:.4f}\t{t.text}" for t in expected]


def test_a_translation_with_a_newline_or_a_tab_stays_on_its_line_and_in_its_column(
    tiny_run, monkeypatch, tmp_path, capsys
):
    def two_lines(self, sources, *_):
        return [[Translation("one\ntwo\tthree", -1.5)] for _ in sources.ids]

    monkeypatch.setattr(Translator, "n_best", two_lines)
    source = tmp_path / "in.en"
    source.write_text("A dog.\nA cat.\n", encoding="utf-8")
    assert main(["translate", str(tiny_run), "--input", str(source), "--scores"]) == 0
    assert capsys.readouterr().out == "-1.5000\tone two three\n" * 2


def test_a_named_text_is_not_for_translators(tiny_run, capsys):
    words = ["--source", "phrasebook:test", "--reference", __file__]
    assert main(["evaluate", str(tiny_run), *words]) == 2
    assert "--source phrasebook:test is for language models, and" in capsys.readouterr().err


def test_rerank_prints_the_translation_of_the_highest_expected_chrf_and_the_time(
    tiny_run, translator, sentences, tmp_path, capsys
):
    source = tmp_path / "in.en"
    source.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    arguments = ["--input", str(source), "--beam-size", "4", "--rerank", "chrf"]
    assert main(["translate", str(tiny_run), *arguments]) == 0
    captured = capsys.readouterr()
    metric, expected = sacrebleu.CHRF(), []
    for beam in translator.n_best(sentences, beam_size=4):
        weights = np.exp([translation.score for translation in beam])
        means = [
            np.average(
                [metric.sentence_score(text, [other]).score for other, _ in beam], None, weights
            )
            for text, _ in beam
        ]
        expected.append(beam[np.argmax(np.round(means, 9))].text)
    assert captured.out.splitlines() == expected
    assert expected != translator.translate(sentences, beam_size=4)
    count = len(sentences)
    assert re.search(rf"^reranked {count} sentences in \d+\.\d\d s$", captured.err, re.M)


def test_sentences_that_are_too_long_are_cut_and_counted_once_for_the_file(
    tiny_run, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(engine, "CHUNK", 2)
    source = tmp_path / "in.en"
    source.write_text(("the animal " * 500 + "\nThe animal is tired.\n") * 2)
    assert main(["translate", str(tiny_run), "--input", str(source)]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("warning: ") == 1
    assert (
        "warning: 2 of 4 sentences had more than 39 tokens, the model's limit, and were truncated"
        in captured.err
    )
    assert len(captured.out.splitlines()) == 4


@pytest.mark.slow
def test_a_reader_who_has_enough_ends_the_program_quietly(dynamic_litert, tmp_path):
    source = tmp_path / "in.en"
    source.write_text("The animal is tired.\n" * 3000)
    translate = f"{sys.executable} -m tfformer translate {dynamic_litert} --beam-size 1"
    command = f"{translate} --input {source} | head -1"
    printed = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert len(printed.stdout.splitlines()) == 1
    assert printed.stderr == ""


def test_an_interrupted_verb_says_so_in_one_line(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("tfformer.config.builtin_recipes", interrupted)
    assert main(["recipes"]) == 130
    assert capsys.readouterr().err == "tfformer: interrupted\n"


def test_tensorflows_own_errors_are_one_line(tiny_run, tmp_path, monkeypatch, capsys):
    def too_much(*arguments):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when\nallocating")

    monkeypatch.setattr(Translator, "n_best", too_much)
    (tmp_path / "in.en").write_text("Hello.\n")
    assert "OOM when allocating" in refused(
        ["translate", tiny_run, "--input", tmp_path / "in.en"], capsys
    )


@pytest.mark.slow
def test_evaluate_ends_in_one_json_line_that_sacrebleu_confirms(
    tiny_run, translator, tmp_path, capsys
):
    pairs = phrasebook.pairs("test")[:20]
    (tmp_path / "t.en").write_text("".join(pair.source + "\n" for pair in pairs))
    (tmp_path / "t.de").write_text("".join(pair.target + "\n" for pair in pairs))
    files = ["--source", str(tmp_path / "t.en"), "--reference", str(tmp_path / "t.de")]
    assert main(["evaluate", str(tiny_run), *files]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    translations = translator.translate([pair.source for pair in pairs])
    references = [[pair.target for pair in pairs]]
    assert result["bleu"] == pytest.approx(sacrebleu.corpus_bleu(translations, references).score)
    assert result["chrf"] == pytest.approx(sacrebleu.corpus_chrf(translations, references).score)
    assert result["sentences"] == 20
    assert result["seconds"] > 0
    assert "tok:13a" in result["signature"]
    (tmp_path / "other.de").write_text("".join(f"{text}\n" for text in translations))
    more = ["--reference", str(tmp_path / "other.de")]
    assert main(["evaluate", str(tiny_run), *files, *more]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["bleu"] == pytest.approx(100)
    assert "nrefs:2" in result["signature"]


@pytest.fixture
def pair_files(tmp_path) -> list[str]:
    """Two files of three pairs; the second pair has no source."""
    (tmp_path / "s.en").write_text("The animal is tired.\n\nThe cat sleeps.\n")
    (tmp_path / "t.de").write_text(
        "Das Tier ist müde.\nHallo.\nDie Katze schläft.\n", encoding="utf-8"
    )
    return ["--source", str(tmp_path / "s.en"), "--target", str(tmp_path / "t.de")]


def test_score_prints_a_line_a_pair_and_a_summary(
    tiny_run, translator, pair_files, monkeypatch, capsys
):
    monkeypatch.setattr(translator_module, "CHUNK", 2)
    assert main(["score", str(tiny_run), *pair_files]) == 0
    captured = capsys.readouterr()
    rows = [line.split("\t") for line in captured.out.splitlines()]
    sources = Path(pair_files[1]).read_text("utf-8").splitlines()
    targets = Path(pair_files[3]).read_text("utf-8").splitlines()
    scores = translator.score(sources, targets)
    assert rows[1] == ["0.0000", "0", "nan"]
    for row, score in zip(rows, scores, strict=True):
        log_prob = sum(score.log_probs.tolist())
        assert float(row[0]) == pytest.approx(log_prob, abs=1e-3)
        assert int(row[1]) == len(score.tokens)
        if score.tokens:
            assert float(row[2]) == pytest.approx(math.exp(-log_prob / int(row[1])), rel=1e-3)
    summary = json.loads(captured.err)
    log_prob = sum(float(row[0]) for row in rows)
    tokens = sum(int(row[1]) for row in rows)
    assert (summary["pairs"], summary["tokens"]) == (3, tokens)
    assert summary["log_prob"] == pytest.approx(log_prob, abs=1e-3)
    assert summary["perplexity"] == pytest.approx(math.exp(-log_prob / tokens), rel=1e-3)


def test_score_refuses_files_that_are_no_pairs(tiny_run, pair_files, tmp_path, capsys):
    (tmp_path / "t.de").write_text("Das Tier.\n")
    arguments = ["score", tiny_run, *pair_files]
    assert "s.en has 3 lines and" in refused(arguments, capsys)
    (tmp_path / "s.en").write_text("")
    (tmp_path / "t.de").write_text("")
    assert "is empty; it needs at least one sentence pair" in refused(arguments, capsys)


def test_corpus_writes_six_files_and_overwrites_none(tmp_path, capsys):
    assert main(["corpus", "phrasebook", "--output", str(tmp_path / "c")]) == 0
    english = (tmp_path / "c" / "test.en").read_text(encoding="utf-8").splitlines()
    assert english == [pair.source for pair in phrasebook.pairs("test")]
    (tmp_path / "c" / "test.en").write_text("mine")
    assert "exist" in refused(["corpus", "phrasebook", "--output", tmp_path / "c"], capsys)
    assert (tmp_path / "c" / "test.en").read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"good\n\xff\xfe\n", "line 2: byte 1, 0xff, is not UTF-8"),
        (b"good\na\0b\n", "line 2 contains a NUL byte"),
    ],
)
def test_translate_refuses_broken_text_and_writes_nothing(
    tiny_run, tmp_path, capsys, content, message
):
    source, output = tmp_path / "in.en", tmp_path / "out.de"
    source.write_bytes(content)
    assert message in refused(
        ["translate", tiny_run, "--input", source, "--output", output], capsys
    )
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rerank", "chrf", "--beam-size", "1"], "the beam size is 1; set --beam-size 8"),
        (["--rerank", "chrf", "--keep", __file__], "--rerank needs one sentence per line; set"),
        (["--format", "html", "--scores"], "--scores needs one sentence per line; set"),
        (["--format", "html", "--confidence"], "--confidence needs one sentence per line; set"),
        (["--format", "lines", "--keep", __file__], "--keep needs a whole text; set --format text"),
    ],
)
def test_translate_refuses_settings_that_make_no_sense(
    tiny_run, tmp_path, capsys, arguments, message
):
    (tmp_path / "in.en").write_text("Hello.\n")
    assert message in refused(
        ["translate", tiny_run, "--input", tmp_path / "in.en", *arguments], capsys
    )


def test_a_foreign_vocabulary_is_noticed(tiny_run, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    Tokenizer.train(["a b c d e f g"] * 50, 12).save(run / "tokenizer.model")
    assert "is not the vocabulary that" in refused(["translate", run], capsys)


def test_a_message_is_never_long(tmp_path, capsys):
    folder = f"data.folder=/{'x' * 60_000}"
    words = ["train", "multi30k-en-de", "--run-dir", tmp_path / "run", "--set", folder]
    printed = refused(words, capsys)
    assert 2_000 < len(printed) < 2_100
    assert "xxx ... xxx" in printed


@pytest.mark.slow
def test_generate_prints_the_generators_own_texts(counting_run, generator, capsys):
    greedy = ["generate", str(counting_run), "--prefix", "two three", "--top-k", "1"]
    assert main(greedy) == 0
    assert capsys.readouterr().out == generator.complete(["two three"])[0].text + "\n"
    settings = ["--count=3", "--seed=7", "--temperature=1.5", "--top-k=9", "--top-p=0.9"]
    assert main(["generate", str(counting_run), *settings]) == 0
    expected = generator.sample([""] * 3, seed=7, temperature=1.5, top_k=9, top_p=0.9)
    assert capsys.readouterr().out.splitlines() == [text for text, _ in expected]


def test_evaluate_gives_a_language_models_bits_per_byte(counting_run, generator, capsys):
    text = counting_run.parent / "valid.txt"
    assert main(["evaluate", str(counting_run), "--source", str(text)]) == 0
    line, result = capsys.readouterr().out.splitlines()
    expected = generator.bits_per_byte(text.read_text().splitlines())
    assert json.loads(result) == {"bits_per_byte": pytest.approx(expected), "sentences": 24}
    assert line == f"{expected:.4f} bits per byte on 24 sentences"


def test_verbs_refuse_a_run_of_the_other_kind(tiny_run, counting_run, tmp_path, capsys):
    text = counting_run.parent / "valid.txt"
    assert "contains a language model, for `tfformer generate`" in refused(
        ["translate", counting_run], capsys
    )
    assert "contains a translation model, for `tfformer translate`" in refused(
        ["generate", tiny_run], capsys
    )
    for verb in (
        ["attention", counting_run, "one", "--output", tmp_path / "f.png"],
        ["score", counting_run, "--source", text, "--target", text],
    ):
        assert "contains a language model, for `tfformer generate`" in refused(verb, capsys)
    both = ["--source", text, "--reference", text]
    assert "is a language model and does not accept --reference" in refused(
        ["evaluate", counting_run, *both], capsys
    )
    assert "is a translation model and needs --reference FILE" in refused(
        ["evaluate", tiny_run, "--source", text], capsys
    )


def test_a_run_from_another_resumes_by_its_own_recipe(counting_run, tmp_path, monkeypatch, capsys):
    """Without a recipe, and with one that has no model; no training reaches its first step."""
    epochs = []

    def interrupted(model, run, config, *_):
        epochs.append(config.training.epochs)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "_fit", interrupted)
    tuned = ["--run-dir", str(tmp_path / "tuned")]
    text = {"train": "train.txt", "valid": "valid.txt", "folder": str(counting_run.parent)}
    settings = ["--set", *(f"data.{key}={value}" for key, value in text.items())]
    begun = [*tuned, "--init-from", str(counting_run), *settings, "training.epochs=3"]
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(json.dumps({"data": text, "training": {"epochs": 5}}))
    for arguments in (begun, [*tuned, "--resume"], [str(recipe), *tuned, "--resume"]):
        assert main(["train", *arguments]) == 130
    assert epochs == [3, 3, 5]
    capsys.readouterr()
    refusal = refused(["train", *tuned, "--resume", "--set", "training.seed=3"], capsys)
    assert "--resume cannot change training.seed from 1 to 3" in refusal


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_an_empty_one(closed):
    """Some daemons start their programs with closed streams."""
    command = f"{sys.executable} -m tfformer recipes {closed}"
    done = subprocess.run(command, shell=True, capture_output=True)
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0
    assert closed == ">&-" or b"multi30k-en-de" in done.stdout


@pytest.mark.slow
def test_files_of_two_columns_are_lines_to_be_compared(tiny_run, tmp_path, capsys):
    """They are not sources of pairs, as they would be in a recipe."""
    for name, line in (("a.tsv", "the dog.\tx"), ("b.tsv", "der hund.\ty")):
        (tmp_path / name).write_text(f"{line}\n" * 3)
    files = ["--source", str(tmp_path / "a.tsv"), "--target", str(tmp_path / "b.tsv")]
    assert main(["score", str(tiny_run), *files]) == 0
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["pairs"] == 3
