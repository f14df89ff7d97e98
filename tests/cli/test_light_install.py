"""Exports translate without TensorFlow; commands that need it say how to install it."""

import pytest
from support.light_install import light, light_lines

from tfformer.cli.main import main
from tfformer.inference.alignment import pharaoh

pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed: pip install -e '.[litert]'")

PAGE = (
    '<html lang="en"><body><h1>Good morning.</h1>\n<p>The <b>animal</b> is tired. See '
    '<a href="https://x.org/">https://x.org/</a> &amp; <code>run()</code>.</p></body></html>\n'
)


@pytest.mark.slow
def test_a_page_is_translated_without_tensorflow(dynamic_litert, translator):
    """The result equals that of the run."""
    done = light("translate", dynamic_litert, "--format", "html", text=PAGE)
    assert (done.returncode, done.stderr) == (0, "")
    texts = translator.text_translator(align=lambda *pairs: links_of(translator, *pairs))
    assert done.stdout == texts.translate(PAGE, "html")


def links_of(translator, sources, translations):
    return [pair.nearest_targets() for pair in translator.aligned(sources, translations)]


@pytest.mark.slow
def test_words_are_aligned_without_tensorflow(dynamic_litert, translator):
    lines = ["The animal is tired.", "", "Where is the station?"]
    columns = ["--alignments", "--confidence"]
    done = light("translate", dynamic_litert, *columns, text="\n".join(lines))
    assert (done.returncode, done.stderr) == (0, "")
    translations = translator.translate(lines)
    pairs = translator.aligned(lines, translations)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == translations
    expected = [pair.confidence for pair in pairs]
    assert [float(row[1]) for row in rows] == pytest.approx(expected, abs=1e-3)
    assert [row[2] for row in rows] == [pharaoh(pair.links()) for pair in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("column", ["--alignments", "--confidence"])
def test_an_export_without_alignments_is_refused_before_the_first_line(
    ctranslate2_export, column, tmp_path, capsys
):
    (tmp_path / "empty").touch()
    assert (
        main(["translate", str(ctranslate2_export), "--input", str(tmp_path / "empty"), column])
        == 2
    )
    assert "export has no word alignments; export the run again as" in capsys.readouterr().err


@pytest.mark.slow
def test_lines_are_translated_in_their_order(dynamic_litert, translator):
    lines = ["The dog.", "", "Where is the station?", "The animal is tired."]
    done = light("translate", dynamic_litert, "--n-best", 2, "--scores", text="\n".join(lines))
    assert (done.returncode, done.stderr) == (0, "")
    expected = []
    for best in translator.n_best(lines):
        expected += [*best, ("", 0.0)][:2]
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [text for _, text in rows] == [text for text, _ in expected]
    scores = [score for _, score in expected]
    assert [float(score) for score, _ in rows] == pytest.approx(scores, abs=1e-3)


@pytest.mark.slow
def test_sentences_that_were_truncated_are_counted(dynamic_litert):
    done = light("translate", dynamic_litert, text="The dog " * 60 + "\nThe dog.\n")
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == (
        "warning: 1 of 2 sentences had more than 39 tokens, the model's limit, and were truncated\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--length-penalty", "1"], "--length-penalty requires a run directory, and"),
        (["--languages", "en,de"], "--languages requires a run directory, and"),
        (["--beam-size", "7"], "supports only --beam-size 1 and 3; omit --beam-size 7, or export"),
        (
            ["--n-best", "7"],
            "the export has no search with 7 beams; export the run again with --beam-size 7",
        ),
    ],
)
def test_an_option_that_an_export_lacks_is_refused(dynamic_litert, capsys, arguments, message):
    assert main(["translate", str(dynamic_litert), *arguments, "--input", __file__]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.slow
def test_a_verb_that_needs_tensorflow_names_the_extra(tiny_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = str(tiny_run)
    lines = [
        ["train", "phrasebook", "--run-dir", "new"],
        ["translate", run],
        ["score", run, "--source", __file__, "--target", __file__],
        ["attention", run, "The dog.", "--output", "look.html"],
        ["inspect", run],
        ["export", run, "--format", "saved_model", "--output", "models"],
        ["serve", run, "--port", "0"],
    ]
    done = light_lines(lines, text="The dog.\n")
    assert (done.returncode, done.stdout) == (2, "")
    messages = done.stderr.splitlines()
    assert len(messages) == len(lines)
    for message in messages:
        assert " needs " in message
        assert message.endswith("pip install -e '.[tensorflow]'")
    assert list(tmp_path.iterdir()) == []
