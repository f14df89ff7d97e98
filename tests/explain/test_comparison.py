"""Comparisons of two systems, beside sacreBLEU's own command."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.significance import PairedTest

from tfformer.cli.main import main
from tfformer.data import phrasebook
from tfformer.explain.comparison import Comparison, SentenceComparison, compare, marked

BASE, OTHERS = "base", ("close", "better", "perfect")
TRIALS = 1000  # of approximate randomisation, a tenth of sacreBLEU's default


@pytest.fixture(scope="module", autouse=True)
def fewer_trials() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PairedTest._DEFAULT_SAMPLES, "ar", TRIALS)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Translations of 100 sentences by four systems, three of which make mistakes."""
    folder = tmp_path_factory.mktemp("comparison")
    pairs = phrasebook.pairs("test")[:100]
    references = [pair.target for pair in pairs]
    rng = random.Random(1)

    def spoiled(share: float) -> list[str]:
        words = [text.split() for text in references]
        return [" ".join(w if rng.random() > share else "Haus" for w in line) for line in words]

    base = spoiled(0.3)
    texts = {
        "source": [pair.source for pair in pairs],
        "reference": references,
        BASE: base,
        "close": base[:60] + references[60:65] + base[65:],
        "better": spoiled(0.2),
        "perfect": references,
    }
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def compared(folder) -> dict[str, Comparison]:
    sources, references = lines_of(folder / "source"), [lines_of(folder / "reference")]
    base = lines_of(folder / BASE)
    return {
        name: compare({"A": base, "B": lines_of(folder / name)}, sources, references)
        for name in OTHERS
    }


def printed(folder: Path, test: str) -> tuple[list[list[str]], list[str]]:
    """What the command `sacrebleu` prints of the base, and of each other system against it.

    The numbers of each score (with the bootstrap its mean and interval too), and the p-values.
    """
    words = ["-i", BASE, *OTHERS, "-m", "bleu", "chrf", "-f", "text", "-w", "4"]
    words += [f"--paired-{test}", f"--paired-{test}-n", str(TRIALS)]
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", "reference", *words],
        cwd=folder,
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    table = done.stdout.partition("trials")[0]
    scores = re.findall(r"│ +(\d+\.\d{4})(?: \((\d+\.\d{4}) ± (\d+\.\d{4})\))?(?= +│)", table)
    return scores, re.findall(r"p = (\d\.\d{4})", table)


@pytest.mark.slow
def test_scores_and_p_values_are_those_of_sacrebleus_command(folder, compared):
    """The p-values in all digits that it prints; its resamples too."""
    bootstrap, randomisation = printed(folder, "bs"), printed(folder, "ar")
    metrics = [metric for name in OTHERS for metric in compared[name].metrics]
    assert [f"{row.bootstrap_p:.4f}" for row in metrics] == bootstrap[1]
    assert [f"{row.randomisation_p:.4f}" for row in metrics] == randomisation[1]
    assert {row.better for row in metrics} == {None, "B"}
    base, systems = bootstrap[0][:2], bootstrap[0][2:]
    assert [f"{row.scores[1]:.4f}" for row in metrics] == [score for score, *_ in systems]
    for number, row in enumerate(metrics):
        (score, mean, width), other_mean = base[number % 2], systems[number][1]
        assert f"{row.scores[0]:.4f}" == score
        # The mean of the differences is the difference of the means.
        difference = float(other_mean) - float(mean)
        assert sum(row.interval) / 2 == pytest.approx(difference, abs=2e-4)
        if row.scores[1] > 99.99:  # in every resample: the interval is that of the base
            low, high = row.interval
            assert (high - low) / 2 == pytest.approx(float(width), abs=2e-4)


def test_the_sentences_that_differ_most(folder, compared):
    references, base = lines_of(folder / "reference"), lines_of(folder / BASE)
    sentences = compared["close"].most_different
    different = [n for n in range(60, 65) if base[n] != references[n]]
    assert compared["close"].different == len(different)
    assert {pair.line - 1 for pair in sentences} == set(different)
    gaps = [pair.chrf[1] - pair.chrf[0] for pair in sentences]
    assert gaps == sorted(gaps, reverse=True)
    for pair in sentences:
        assert pair.translations == (base[pair.line - 1], references[pair.line - 1])
        expected = sacrebleu.sentence_chrf(pair.translations[0], list(pair.references)).score
        assert pair.chrf == (expected, pytest.approx(100))


def test_few_sentences_are_never_significant():
    """The p-value of so few is the smallest one, though any order of them would give the same."""
    with pytest.warns(UserWarning, match="3 sentences are too few to rely on the p-values"):
        comparison = compare({"A": ["Nein."] * 3, "B": ["Ja."] * 3}, ["Yes."] * 3, [["Ja."] * 3])
    assert comparison.metrics[1].randomisation_p < 0.01
    assert [metric.better for metric in comparison.metrics] == [None, None]


def test_equal_scores_are_never_significant():
    """Neither metric sees white space, and sacreBLEU's p-values are then the smallest ones."""
    texts = {"A": ["Ein Hund schläft."] * 100, "B": ["Ein  Hund  schläft."] * 100}
    comparison = compare(texts, ["A dog sleeps."] * 100, [["Der Hund schläft."] * 100])
    assert [metric.difference for metric in comparison.metrics] == [0, 0]
    assert [metric.better for metric in comparison.metrics] == [None, None]


WORDS = st.lists(st.sampled_from(["der", "Hund", " ", ",", "我", "喜", "\u00a0"]), max_size=8)


@given(WORDS.map("".join), WORDS.map("".join))
def test_marks_leave_a_common_subsequence(first, second):
    both = marked(first, second), marked(second, first)
    assert ["".join(words for words, _ in spans) for spans in both] == [first, second]
    for spans, text in zip(both, (second, first), strict=True):
        left = iter(text)
        assert all(letter in left for words, differs in spans for letter in words if not differs)


def test_characters_of_chinese_are_marked_one_by_one():
    assert marked("我喜欢茶。", "我喜欢水。") == [("我喜欢", False), ("茶", True), ("。", False)]


# --- The verb -----------------------------------------------------------------------------------


def test_the_verb_prints_and_writes_what_it_found(folder, compared, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    words = ["compare", BASE, "close", "--source", "source", "--reference", "reference"]
    assert main([*words, "--output", str(tmp_path / "found.json")]) == 0
    printed = capsys.readouterr().out.splitlines()
    expected = {**asdict(compared["close"]), "systems": (BASE, "close")}
    written = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(expected))
    bleu = compared["close"].metrics[0]
    assert printed[:2] == ["A  base", "B  close"]
    assert printed[5].split()[:4] == [
        *("BLEU", f"{bleu.scores[0]:.2f}", f"{bleu.scores[1]:.2f}", f"{bleu.difference:+.2f}"),
    ]
    assert printed[5].split()[-2:] == [f"{bleu.bootstrap_p:.4f}", f"{bleu.randomisation_p:.4f}"]
    assert f"A          {compared['close'].most_different[0].translations[0]}" in printed


@pytest.mark.slow
@pytest.mark.usefixtures("verbs_share_models")
def test_runs_exports_and_files_are_compared(
    tiny_run, translator, dynamic_litert, folder, tmp_path, capsys
):
    """The export translates as its run does, which leaves nothing to test."""
    first = {name: lines_of(folder / name)[:20] for name in ("source", "reference", BASE)}
    for name, lines in first.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with_two = ["--source", tmp_path / "source", *["--reference", tmp_path / "reference"] * 2]
    words = [str(word) for word in ["compare", tiny_run, tmp_path / BASE, *with_two]]
    assert main([*words, "--output", str(tmp_path / "found.json")]) == 0
    bleu = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["metrics"][0]
    own = translator.translate(first["source"])
    expected = sacrebleu.corpus_bleu(own, [first["reference"]] * 2).score
    assert bleu["scores"][0] == pytest.approx(expected)
    assert "nrefs:2|" in bleu["signature"]
    capsys.readouterr()
    assert main(["compare", str(tiny_run), str(dynamic_litert), *map(str, with_two)]) == 2
    assert "give the same 20 translations, but a test needs a" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("short", "Ja.\n", "source has 100 lines and short 1, but"),
        ("empty", "", "source has 100 lines and empty 0, but"),
        ("picture", b"\x89PNG\n", "picture, line 1: byte 1, 0x89, is not UTF-8; convert"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(folder, name, content, message, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    words = ["--source", "source", "--reference", "reference"]
    assert main(["compare", BASE, name, *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


def test_the_page_shows_scores_marks_and_what_was_chosen(browser, compared, tmp_path):
    nasty = "<img src=x onerror=document.title='broken'></script>"
    translations = ("Das Tier schläft.", "Das Tier schlief."), ("Ein Tier.", nasty)
    sentences = [
        SentenceComparison(number, nasty, (nasty, "Ja."), texts, chrf)
        for number, texts, chrf in zip((4, 2), translations, [(90.0, 50.0), (30, 40)], strict=True)
    ]
    comparison = replace(
        compared["close"], systems=("runs/a", nasty), most_different=tuple(sentences)
    )
    (tmp_path / "page.html").write_text(comparison.page(), encoding="utf-8")
    browser.open((tmp_path / "page.html").as_uri())
    assert browser.evaluate("document.querySelector('h1').textContent") == f"runs/a and {nasty}"
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    scores = "[...document.querySelectorAll('.scores dd')].map((score) => score.textContent)"
    bleu, chrf = comparison.metrics
    expected = [f"{score:.2f}" for metric in (bleu, chrf) for score in metric.scores]
    shown = browser.evaluate(scores)
    assert [*shown[:2], *shown[3:5]] == expected
    of_line_4 = "document.querySelectorAll('#sentences article')[0]"
    marks = f"[...{of_line_4}.querySelectorAll('mark')].map((mark) => mark.textContent)"
    assert browser.evaluate(marks) == ["schläft", "schlief"]
    browser.click("#filters button:nth-child(2)")
    visible = "[...document.querySelectorAll('#sentences article:not([hidden]) .line')]"
    assert browser.evaluate(f"{visible}.map((line) => line.firstChild.textContent)") == ["Line 4"]
