"""Teachers translate a text into pairs, on which a student trains."""

import gzip
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import sacrebleu
from support.scripted_engine import ScriptedEngine

from tfformer.cli.main import main
from tfformer.config import Config
from tfformer.corpora.parts import find_parts, translate_part
from tfformer.corpora.teachers import Program, Server, find_teacher
from tfformer.data.sources import read_pairs
from tfformer.engines import Artifact, find_artifact
from tfformer.inference import Translation
from tfformer.storage.artifact_folders import write_manifest

UPPER = "import sys; sys.stdout.writelines(line.upper() for line in sys.stdin)"
SLOWLY = UPPER.replace("sys.stdout", "import time; time.sleep(0.2); sys.stdout")
SENTENCES = [source for source, _ in read_pairs("phrasebook:valid")][:24]


def python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


def pairs_of(teacher, source: Path, folder: Path) -> list[list[str]]:
    """Store the pairs of a text and read them."""
    folder.mkdir(exist_ok=True)
    [part] = find_parts(str(source), folder, makes_pairs=True)
    engine = teacher if isinstance(teacher, ScriptedEngine) else teacher.open()
    translate_part(engine, part, lambda counts: None)
    text = gzip.decompress(part.output.read_bytes()).decode()
    return [line.split("\t") for line in text.split("\n")[:-1]]


# --- Teachers -----------------------------------------------------------------------------------


def test_a_teacher_is_told_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("llm.sh").write_text("#!/bin/sh\ncat\n")
    with pytest.raises(ValueError, match=r"\./llm\.sh is neither .* make the program executable"):
        find_teacher("./llm.sh")
    Path("llm.sh").chmod(0o755)
    assert isinstance(find_teacher("./llm.sh"), Program)
    assert isinstance(find_teacher("cat -u"), Program)
    assert isinstance(find_teacher("https://a.org/translate", 3, ["en", "de"]), Server)
    Path("cat").mkdir()
    with pytest.raises(ValueError, match="cat is neither a run directory nor an export"):
        find_teacher("cat")


def test_a_teacher_of_other_languages_is_refused(tmp_path):
    manifest = {"format": "litert", "languages": ["en", "de"], "decoding": {"beam_size": 1}}
    write_manifest(tmp_path, manifest)
    assert isinstance(find_teacher(str(tmp_path), None, ["en", "de"]), Artifact)
    with pytest.raises(ValueError, match=r"en to de, but data\.languages is \[de, en\]; use"):
        find_teacher(str(tmp_path), None, ["de", "en"])


def test_a_program_is_stored_as_it_answers(tmp_path):
    lines = [f"{sentence}\t{number}" for number, sentence in enumerate(SENTENCES)]
    lines[3:5] = ["", "  "]
    source = tmp_path / "mono.en.gz"
    source.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode() + b"\xff\n"))
    found = pairs_of(Program(python(UPPER)), source, tmp_path / "pairs")
    clean = [line.replace("\t", " ") for line in lines if line.strip()]
    assert found == [[line, line.upper()] for line in clean]
    assert (tmp_path / "pairs" / "mono.en.tsv.gz.bad.tsv").read_text().startswith("25\tnot UTF-8")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('x')", "answers 3 lines with 1; a teacher gives one line for each line"),
        (f"{UPPER}; print('x')", "answers 3 lines with more"),
        ("print('\\n' * 2)", "answers 'One.' with an empty line; leave this sentence out"),
        (f"{UPPER}; sys.exit(5)", "ended with exit code 5"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\n' * 3)", "is not UTF-8"),
    ],
)
def test_wrong_answers_are_refused_and_nothing_is_written(code, message, tmp_path):
    source = tmp_path / "mono.en"
    source.write_text("One.\n\nTwo.\nThree.\n")
    program = Program(python(code))
    with pytest.raises(ValueError, match=message):
        program.try_on(source)
    with pytest.raises(ValueError, match=message):
        pairs_of(program, source, tmp_path / "pairs")
    assert not list((tmp_path / "pairs").iterdir())


class Handler(BaseHTTPRequestHandler):
    """Answers backwards, with alternatives that begin with a number."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        best = [text[::-1] for text in asked["q"]]
        answer = {"translatedText": best[: self.server.limit]}
        if count := asked.get("alternatives"):
            answer["alternatives"] = [[f"{n} {text}" for n in range(count)] for text in asked["q"]]
        is_known = asked["target"] == "de"
        body = json.dumps(answer if is_known else {"error": "no such language"}).encode()
        self.send_response(200 if is_known else 400)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def libretranslate():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.limit = [], 1_000
    threading.Thread(target=server.serve_forever).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_server_is_stored_as_it_answers(libretranslate, tmp_path):
    address = f"http://127.0.0.1:{libretranslate.server_port}"
    (tmp_path / "mono.en").write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    teacher = Server(address, 4, ["en", "de"])
    found = pairs_of(teacher, tmp_path / "mono.en", tmp_path / "pairs")
    assert found == [[sentence, sentence[::-1]] for sentence in SENTENCES]
    [asked] = libretranslate.asked
    assert asked == {"q": SENTENCES, "source": "en", "target": "de"}

    (tmp_path / "two.tsv").write_text("abc\t2 abc\ndef\tfed\n")
    found = pairs_of(teacher, tmp_path / "two.tsv", tmp_path / "pairs")
    assert found == [["abc", "2 abc"], ["def", "fed"]]
    with pytest.raises(ValueError, match=r"answers 400: .*no such language"):
        pairs_of(Server(address, 4, ["en", "fr"]), tmp_path / "mono.en", tmp_path / "pairs")
    libretranslate.limit = 3
    with pytest.raises(ValueError, match="answers 24 lines with 3; a teacher gives"):
        pairs_of(teacher, tmp_path / "mono.en", tmp_path / "pairs")
    with pytest.raises(ValueError, match="does not answer in JSON"):
        Server("http://127.0.0.1:9", 4, ["en", "de"]).translate(["a"])


def test_the_candidate_closest_to_the_reference_is_kept(tmp_path):
    draw = random.Random(1)
    words = ["the", "dog", "cat", "sees", "a", "house", "and", "of"]
    sentences = [" ".join(draw.choices(words, k=6)) for _ in range(150)]
    beams = {s: [" ".join(draw.choices(words, k=5)) for _ in range(4)] for s in sentences}
    references = {s: " ".join(draw.choices(words, k=6)) for s in sentences}

    class Beams(ScriptedEngine):
        def n_best(self, texts):
            return [[Translation(text, 0.0) for text in beams[s]] for s in texts]

    rows = "".join(f"{s}\t{references[s]}\n" for s in sentences)
    (tmp_path / "a.tsv").write_text(f"{rows}no reference\nthree\tcolumns\there\n")
    found = pairs_of(Beams(None, 99), tmp_path / "a.tsv", tmp_path / "pairs")
    metric = sacrebleu.CHRF()
    assert [source for source, _ in found] == sentences
    for source, kept in found:
        scores = [metric.sentence_score(b, [references[source]]).score for b in beams[source]]
        assert kept == beams[source][scores.index(max(scores))]
    bad = (tmp_path / "pairs" / "a.tsv.gz.bad.tsv").read_text()
    assert bad == "151\t1 columns, not 2\n152\t3 columns, not 2\n"


def test_texts_whose_pairs_would_share_a_file_are_refused(tmp_path):
    for name in ("a.en", "a.en.gz"):
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=r"a\.en and .*a\.en\.gz have the same name"):
        find_parts(f"{tmp_path}/a.en*", tmp_path / "pairs", makes_pairs=True)


@pytest.mark.slow
def test_the_pairs_of_a_model_are_its_translations(ctranslate2_export, tmp_path):
    (tmp_path / "mono.en").write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    teacher = find_artifact(ctranslate2_export)
    found = pairs_of(teacher, tmp_path / "mono.en", tmp_path / "pairs")
    assert [target for _, target in found] == teacher.open().translate(SENTENCES)


# --- The command --------------------------------------------------------------------------------


@pytest.fixture
def words(tmp_path, monkeypatch) -> list[str]:
    """A command line without its teacher, in a folder with three texts and a recipe."""
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        lines = SENTENCES[8 * number : 8 * number + 8]
        Path(f"mono-{number}.en").write_text("".join(f"{line}\n" for line in lines))
    recipe = {
        "model": {"preset": "student-tiny", "num_layers": 1, "d_model": 16, "d_ff": 16},
        "tokenizer": {"vocab_size": 80},
        "data": {"valid": "valid.tsv", "languages": ["en", "de"]},
        "training": {"epochs": 1},
    }
    Path("valid.tsv").write_text("A dog.\tA DOG.\n")
    Path("student.yaml").write_text(json.dumps(recipe))
    return ["--text", "mono-*.en", "--recipe", "student.yaml", "--run-dir", "run"]


def test_a_killed_command_continues_with_the_same_bytes(words, monkeypatch, capsys):
    trained = []

    def train(config: Config, run_dir: str, resume: bool) -> dict:
        trained.append((config, resume))
        return {}

    monkeypatch.setattr("tfformer.training.train.train", train)
    killed = ["distill", python(SLOWLY), *words]
    process = subprocess.Popen([sys.executable, "-m", "tfformer", *killed], stderr=subprocess.PIPE)
    end = time.monotonic() + 300
    while not list(Path("run").glob("pairs/*.tsv.gz")) and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert main(killed) == 0
    [(config, is_resumed)] = trained
    assert list(read_pairs(config.data.train)) == [(s, s.upper()) for s in SENTENCES]
    assert not is_resumed

    other = [*words[:-1], "other"]
    assert main(["distill", python(SLOWLY), *other]) == 0
    for file in Path("run/pairs").glob("*.tsv.gz"):
        assert file.read_bytes() == Path("other/pairs", file.name).read_bytes()
    assert main(["distill", "cat", *words]) == 2
    assert "has translations by another model" in capsys.readouterr().err


@pytest.mark.slow
def test_a_student_is_trained_and_the_same_command_changes_nothing(words, tiny_run, capsys):
    assert main(["distill", str(tiny_run), *words, "--beam-size", "1"]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    digest = Path("run/best.weights.h5").read_bytes()
    assert main(["distill", str(tiny_run), *words, "--beam-size", "1"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == result
    assert Path("run/best.weights.h5").read_bytes() == digest
    assert result["epochs"] == 1


def test_a_teacher_that_fails_later_leaves_no_student(words, capsys):
    """The first sentences are answered, the last file is not."""
    Path("mono-2.en").write_text("".join(f"{n}\n" for n in range(20)))
    assert main(["distill", "head -n 8", *words]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("tfformer: 1 of 3 files were not translated: ")
    assert "mono-2.en: head -n 8 answers 20 lines with 8" in error
    assert not Path("run/config.json").exists()
    stored = sorted(path.name for path in Path("run/pairs").glob("*.gz"))
    assert stored == ["mono-0.en.tsv.gz", "mono-1.en.tsv.gz"]
