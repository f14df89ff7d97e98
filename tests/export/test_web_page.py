"""The page in a real browser, also offline, returns the tokens of LiteRT in Python."""

import functools
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import sentencepiece
from support.exported_page import MISSING, PROGRAMS, browse, cut
from support.segmentations import log_probability, stretched

from tfformer.data.sources import read_pairs
from tfformer.engines import open_engine
from tfformer.engines.litert import IdSearch
from tfformer.export import web
from tfformer.export.pipeline import export_model
from tfformer.html_page import LOOK
from tfformer.runtime.progress_lines import Steps
from tfformer.special_ids import END_ID

SENTENCES = [source for source, _ in itertools.islice(read_pairs("phrasebook:valid"), 40)]


TAGGED = """
globalThis.document = {{ baseURI: "http://localhost/" }};
const asked = [];
globalThis.Worker = class {{
  constructor() {{
    queueMicrotask(() => this.onmessage({{ data: {{ model: {model} }} }}));
  }}
  postMessage({{ line, request }}) {{
    asked.push(line);
    const cut = line.length > 40;
    queueMicrotask(() => this.onmessage({{ data: {{ request, text: "X.", cut }} }}));
  }}
}};
const {{ load }} = await import("{folder}/translator.js");
const translator = await load();
const translation = await translator.translate({text});
const shown = (await translator.stretches({text})).map(({{ text }}) => text).join("");
process.stdout.write(JSON.stringify([asked, translation, shown]));
"""


@pytest.fixture(scope="module")
def programs():
    if MISSING:
        pytest.skip(f"{' and '.join(MISSING)} not installed")
    pytest.importorskip(
        "ai_edge_litert", reason="LiteRT is not installed: pip install -e '.[litert]'"
    )


@pytest.fixture(scope="module")
def page(programs, exported_page):
    return exported_page


def ids_in_python(page, sentences):
    """Return greedy translations of the page's LiteRT file, as ids with the end token."""
    with open_engine(page / "model", threads=1) as engine:
        search = IdSearch(page / "model" / "model.tflite", engine.manifest)
        rows = engine.tokenizers.source.encode(sentences)
        rows_of_ids = [search.run([row], "translate").ids[0, 0].tolist() for row in rows]
    return [ids[: ids.index(END_ID) + 1] if END_ID in ids else ids for ids in rows_of_ids]


@pytest.mark.parametrize(
    ("model", "text", "asked", "translation"),
    [
        (
            {"tags": ["<de>", "<fr>"]},
            "<fr> A dog sleeps. See https://x.org/a.b now.\n- A cat.",
            [
                "<fr> A dog sleeps.",
                "<fr> See ⟦1⟧ now.",
                "<fr> See https://x.org/a.b now.",  # as the placeholder was lost
                "<fr> A cat.",
            ],
            "X. https://x.org/a.b X.\n- X.",
        ),
        (
            {"tag": "<de>"},
            "A dog. One two three four five six seven eight.",
            [
                "<de> A dog.",
                "<de> One two three four five six seven eight.",  # too long for the model
                "<de> One two three four",
                "<de> five six seven eight.",
            ],
            "X. X. X.",
        ),
        ({"tags": ["<de>"]}, "A dog.", ["A dog."], "X."),
    ],
    ids=["written before the text", "of the export", "not written"],
)
def test_each_sentence_gets_the_tag_of_the_text_or_of_the_export(model, text, asked, translation):
    if not (node := shutil.which("node")):
        pytest.skip("node is not installed")
    described = {"languages": ["en", "de"], "placeholders": ["⟦1⟧"], "tags": [], **model}
    script = TAGGED.format(
        model=json.dumps(described), folder=web.SOURCES / "src", text=json.dumps(text)
    )
    command = [node, "--input-type=module", "--eval", script]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [asked, translation, text]


@pytest.mark.slow
def test_the_page_calls_every_signature_of_its_file(page):
    """Each needs memory."""
    signatures = json.loads((page / "model" / "manifest.json").read_text())["signatures"]
    assert {name.split("_")[0] for name in signatures} == {"translate"}


@pytest.mark.slow
def test_the_browser_gives_the_tokens_of_python(page, translator):
    answer = browse(page, [*SENTENCES, "", "The dog " * 60])
    assert answer["state"] == "Ready."
    expected = ids_in_python(page, SENTENCES)
    *translations, blank, long = answer["translations"]
    assert [translation["ids"] for translation in translations] == expected
    assert [
        translation["text"] for translation in translations
    ] == translator.tokenizers.target.decode(expected)
    assert (blank["text"], blank["ids"], blank["cut"]) == ("", [], False)
    assert long["cut"]
    assert long["ids"]
    assert END_ID in long["ids"] or len(long["ids"]) == translator.max_length
    first, second, third = (translation["text"] for translation in translations[:3])
    assert answer["typed"] == answer["offline"] == first
    assert answer["embedded"] == f"{first}  {second}"  # by the example of docs/browser.md
    assert answer["text"] == f"\t{first}  {second}\n\n {third}\n- 1.5\n"
    assert answer["marked"] == [[SENTENCES[1], second]] * 2  # whichever side is pointed at
    first_line, last_line = answer["kept"].split("\n")
    assert last_line == "12:30 – a_b.txt"
    for word in ("https://a.de/x?b=1", "{name}", "a@b.de", "😀"):
        assert first_line.count(word) == 1
    assert len(translator.tokenizers.target.encode([answer["divided"]])[0]) > translator.max_length
    assert answer["stateOfDivided"] == ""
    assert answer["origins"] == ["own"]
    assert (page / "page.css").read_text().startswith(LOOK.read_text())
    assert answer["fitsAPhone"]
    assert answer["shown"]["model"].startswith("float16, ")
    assert answer["shown"]["memory"].endswith(" MB")
    assert int(answer["shown"]["speed"]) > 0


@pytest.mark.slow
def test_the_browser_cuts_as_python_but_for_equally_likely_cuts(page):
    """The browser's SentencePiece is older.

    Where ids differ, both segmentations have the same probability.
    """
    dice = random.Random(11)
    model = page / "model" / "tokenizer.model"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    assert cut(model, SENTENCES) == processor.encode(SENTENCES, out_type=str)
    texts = [stretched(sentence, dice) for sentence in SENTENCES]
    for browser_pieces, expected in zip(
        cut(model, texts), processor.encode(texts, out_type=str), strict=True
    ):
        likelihoods = [log_probability(model.read_bytes(), c) for c in (browser_pieces, expected)]
        assert likelihoods[0] == pytest.approx(likelihoods[1], abs=1e-4)


@pytest.mark.nightly
def test_of_int8_the_browser_gives_the_tokens_of_python_but_for_near_ties(
    programs, tiny_run, tmp_path
):
    page = export_model(tiny_run, tmp_path, "web", quantize="int8")
    answer, expected = browse(page, SENTENCES), ids_in_python(page, SENTENCES)
    same = [
        row["ids"] == python for row, python in zip(answer["translations"], expected, strict=True)
    ]
    assert sum(same) >= len(SENTENCES) - 2
    assert answer["shown"]["model"].startswith("int8, ")


def other_letters(path):
    """Replace a file by a different one of the same size."""
    path.write_bytes(path.read_bytes()[::-1])


def other_limit(path):
    """Change one setting of a manifest."""
    manifest = json.loads(path.read_text())
    manifest["decoding"]["max_length"] -= 1
    path.write_text(json.dumps(manifest))


def test_the_page_has_the_text_of_which_a_manifest_has_the_digest():
    """Numbers and escapes are written as in Python. The file's order and spaces do not matter."""
    if not PROGRAMS["node"]:
        pytest.skip("node is not installed")
    manifest = {
        "b": {"z": [1.0, 1e-05, 10**20, -0.0, [], {}], "a": None, "ab": True, "manifest_digest": 1},
        "a": ["[{,:}]", 'q"\\', "Größe 漢 😀\u2028\x7f", "", 'c": 1, "d'],
        "manifest_digest": "0" * 64,
    }
    expected = json.dumps({name: manifest[name] for name in ("a", "b")}, sort_keys=True)
    script = (
        f"import {{ canonical }} from '{web.SOURCES / 'src' / 'manifest_digest.js'}';"
        "for await (const text of process.stdin) process.stdout.write(canonical(String(text)));"
    )
    for indent in (None, 2):
        done = subprocess.run(
            [PROGRAMS["node"], "--input-type=module", "--eval", script],
            input=json.dumps(manifest, indent=indent),
            capture_output=True,
            encoding="utf-8",
        )
        assert done.stdout == expected, done.stderr


def test_without_sources_the_error_says_where_they_would_be(tmp_path):
    with pytest.raises(ValueError, match=f"the page's sources are not at {tmp_path}; install"):
        web.built(Steps(), tmp_path)


def test_without_npm_the_error_names_it(tmp_path, monkeypatch):
    (tmp_path / "package.json").write_text("{}")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"must be built, but npm is not installed; install"):
        web.built(Steps(), tmp_path)


def test_a_build_that_fails_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "package.json").write_text("{}")
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(ValueError, match=r"`npm ci` failed in .*: no network"):
        web.built(Steps(), tmp_path)


@pytest.mark.parametrize("changed", ["build.mjs", "package-lock.json", "src/page.js"])
def test_a_page_older_than_its_sources_is_built_again(tmp_path, monkeypatch, changed):
    (tmp_path / "src").mkdir()
    for name in ("package.json", "package-lock.json", "build.mjs", "src/page.js"):
        (tmp_path / name).write_text("{}")
        os.utime(tmp_path / name, (1_000, 1_000))
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho $1 >> commands\nmkdir -p dist\ntouch dist/service_worker.js\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert web.built(Steps(), tmp_path) == web.built(Steps(), tmp_path) == tmp_path / "dist"
    assert (tmp_path / "commands").read_text() == "ci\nrun\n"
    os.utime(tmp_path / changed, (2e9, 2e9))
    web.built(Steps(), tmp_path)
    assert (tmp_path / "commands").read_text() == "ci\nrun\n" * 2


def test_a_page_is_copied_with_a_version_that_changes_with_any_of_its_files(tmp_path):
    built, versions = tmp_path / "dist", []
    built.mkdir()
    shutil.copy(web.SOURCES / "src" / "service_worker.js", built)
    for number, (script, weights) in enumerate((("a", "b"), ("a", "b"), ("c", "b"), ("a", "c"))):
        (built / "page.js").write_text(script)
        folder = tmp_path / str(number)
        (folder / "model").mkdir(parents=True)
        (folder / "model" / "model.tflite").write_text(weights)
        web.lay_out(built, folder)
        versions += re.findall(
            r'const VERSION = "([0-9a-f]{16})";', (folder / "service_worker.js").read_text()
        )
    assert len(versions) == 4
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3


def test_a_service_worker_without_a_place_for_the_version_is_refused(tmp_path):
    (tmp_path / "built").mkdir()
    (tmp_path / "built" / "service_worker.js").write_text("const VERSION = 1;")
    with pytest.raises(ValueError, match=r"service_worker\.js has no line VERSION"):
        web.lay_out(tmp_path / "built", tmp_path / "version")


STATE = "document.getElementById('state').textContent"
VERSIONS = "(caches.keys().then((names) => { window.versions = names.join(); }), window.versions)"
UPDATED = (
    "(navigator.serviceWorker.getRegistration().then(({ installing, waiting, active }) => "
    "{ window.updated = !installing && !waiting && active.state; }), window.updated)"
)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def served_page(page, tmp_path):
    """Serve a copy of the page's folder; yield the folder and the address."""
    folder = Path(shutil.copytree(page, tmp_path / "served"))
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(QuietHandler, directory=folder)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda model: (model / "model.tflite").write_bytes(b"TFL3"),
            "model.tflite is not the file that was exported",
        ),
        (
            lambda model: other_letters(model / "tokenizer.model"),
            "tokenizer.model is not the file that was exported",
        ),
        (lambda model: (model / "tokenizer.model").unlink(), "tokenizer.model is missing (404)"),
        (lambda model: (model / "manifest.json").write_text("null"), "export with --format web"),
        (lambda model: other_limit(model / "manifest.json"), "manifest.json is not the file that"),
        (
            lambda model: (model / "manifest.json").write_text('{"format": "saved_model"}'),
            "export with --format web",
        ),
    ],
)
def test_the_page_says_what_is_wrong_with_its_files(browser, served_page, spoil, message):
    folder, address = served_page
    spoil(folder / "model")
    browser.open(address)
    browser.until(f"{STATE}.includes({message!r})", True, seconds=120)


@pytest.mark.slow
def test_a_damaged_file_that_was_kept_is_asked_for_again(browser, served_page):
    folder, address = served_page
    tokenizer = folder / "model" / "tokenizer.model"
    exported = tokenizer.read_bytes()
    other_letters(tokenizer)
    browser.open(address)
    browser.until(
        f"{STATE}.includes('tokenizer.model is not the file that was exported')", True, seconds=120
    )
    tokenizer.write_bytes(exported)
    browser.open(address)
    browser.until(STATE, "Ready.", seconds=120)


@pytest.mark.slow
def test_a_new_export_takes_the_place_of_the_one_before(browser, served_page):
    """The first visit after the export shows the complete old page.

    The next visit shows the new one.
    """
    folder, address = served_page
    index, worker, version = (
        folder / "index.html",
        folder / "service_worker.js",
        "of the next export",
    )
    (former,) = re.findall(r'const VERSION = "(\w+)"', worker.read_text(encoding="utf-8"))
    browser.open(address)
    browser.until(STATE, "Ready.", seconds=120)
    browser.until(VERSIONS, f"translate-{former}")
    text = re.sub(
        "<title>.*?</title>", "<title>The next one</title>", index.read_text(encoding="utf-8")
    )
    index.write_text(text, encoding="utf-8")
    worker.write_text(worker.read_text(encoding="utf-8").replace(former, version), encoding="utf-8")
    browser.open(address)
    assert browser.evaluate("document.title") != "The next one"
    browser.until(STATE, "Ready.", seconds=120)
    browser.until(f"{VERSIONS}?.includes({version!r})", True)
    browser.until(UPDATED, "activated")
    browser.open("about:blank")
    browser.open(address)
    assert browser.evaluate("document.title") == "The next one"
    browser.until(STATE, "Ready.", seconds=120)
    browser.until(VERSIONS, f"translate-{version}")
