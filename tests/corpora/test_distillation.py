"""Teachers translate a text into pairs, on which a student trains."""

import gzip
import hashlib
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
from tfformer.corpora import teachers
from tfformer.corpora.parts import find_parts, first_sentences, translate_part
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
    with pytest.raises(ValueError, match=r"cat 'a is not a command \(No closing quotation\)"):
        find_teacher("cat 'a")
    long = f"cat {'x' * 300}"  # no file name may have more than 255 bytes
    assert isinstance(find_teacher(long), Program)
    Path("cat").mkdir()
    with pytest.raises(ValueError, match="cat is neither a run directory nor an export"):
        find_teacher("cat")


def test_a_student_with_tags_is_refused_before_the_teacher_works(tmp_path, capsys):
    (tmp_path / "text.en").write_text("A dog.\n")
    words = ["cat", "--text", str(tmp_path / "text.en"), "--recipe", "student-tiny"]
    words += ["--run-dir", str(tmp_path / "run"), "--set", "data.valid=phrasebook:valid"]
    assert main(["distill", *words, "data.tags=[<du>]"]) == 2
    message = "data.tags=['<du>'] needs a text with tags, and a teacher's pairs have none"
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


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
    pairs = pairs_of(Program(python(UPPER)), source, tmp_path / "pairs")
    clean = [line.replace("\t", " ") for line in lines if line.strip()]
    assert pairs == [[line, line.upper()] for line in clean]
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
        program.translate(["One.", "Two.", "Three."])
    with pytest.raises(ValueError, match=message):
        pairs_of(program, source, tmp_path / "pairs")
    assert not list((tmp_path / "pairs").iterdir())


def test_the_digest_of_a_program_changes_with_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = Path("llm.sh")
    for content in (b"#!/bin/sh\ncat\n", b"#!/bin/sh\ncat -u\n"):
        script.write_bytes(content)
        script.chmod(0o755)
        assert find_teacher("./llm.sh").digest.endswith(hashlib.sha256(content).hexdigest())


def test_a_relative_program_runs_in_the_folder_of_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("llm.py").write_text(UPPER)
    Path("llm.sh").write_text(f"#!/bin/sh\n{sys.executable} $1\n")
    Path("llm.sh").chmod(0o755)
    teacher = find_teacher("./llm.sh llm.py")
    monkeypatch.chdir("/")  # as a worker on another machine
    assert teacher.translate(["a"]) == ["A"]


@pytest.fixture
def writer(tmp_path) -> str:
    """A program whose child holds a pipe open for 20 seconds after a wrong answer.

    The pipe ends when all its writers have ended, without " late" if they were killed.
    """
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "program.sh").write_text(
        f"exec 3> {tmp_path}/pipe\n(echo early >&3; sleep 20; echo late >&3) > /dev/null &\n"
        'echo "$1"\nwait\n'
    )
    return f"sh {tmp_path}/program.sh"


def test_a_wrong_answer_ends_the_program_and_its_children(writer, tmp_path):
    pipe = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(ValueError, match="answers 'a' with an empty line"):
        Program(f"{writer} ''").translate(["a", "b"])
    os.set_blocking(pipe, True)
    with open(pipe) as stream:
        assert "late" not in stream.read()


def test_the_program_ends_with_a_killed_worker(writer, tmp_path):
    code = (
        "from tfformer.corpora.teachers import Program\n"
        f"for answer in Program({writer + ' A'!r}).answers('ab'):\n"
        "    print(answer, flush=True)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with (tmp_path / "pipe").open() as stream:
        assert stream.readline() == "early\n"
        assert process.stdout.readline() == "A\n"
        process.kill()
        assert stream.read() == ""
    process.communicate()


def test_a_program_is_tried_on_the_first_sentences_that_are_text(tmp_path):
    content = b"\xff\n\n" + b"".join(b"%d\tx\n" % number for number in range(20))
    for name, expected in (("a.en", "{} x"), ("a.tsv", "{}")):
        (tmp_path / name).write_bytes(content)
        [part] = find_parts(str(tmp_path / name), tmp_path / "out", makes_pairs=True)
        assert first_sentences(part) == [expected.format(number) for number in range(8)]


class Handler(BaseHTTPRequestHandler):
    """Answers backwards, with alternatives that begin with a number."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        if self.server.scripted:
            status, length, body = self.server.scripted.pop(0)
            self.send_response(status)
            self.send_header("Content-Length", str(length or len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
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
    server.asked, server.limit, server.scripted = [], 1_000, []
    threading.Thread(target=server.serve_forever).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_server_is_stored_as_it_answers(libretranslate, tmp_path):
    address = f"http://127.0.0.1:{libretranslate.server_port}"
    (tmp_path / "mono.en").write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    teacher = Server(address, 4, ["en", "de"])
    pairs = pairs_of(teacher, tmp_path / "mono.en", tmp_path / "pairs")
    assert pairs == [[sentence, sentence[::-1]] for sentence in SENTENCES]
    [asked] = libretranslate.asked
    assert asked == {"q": SENTENCES, "source": "en", "target": "de"}

    (tmp_path / "two.tsv").write_text("abc\t2 abc\ndef\tfed\n")
    pairs = pairs_of(teacher, tmp_path / "two.tsv", tmp_path / "pairs")
    assert pairs == [["abc", "2 abc"], ["def", "fed"]]
    with pytest.raises(ValueError, match=r"answers 400: .*no such language"):
        pairs_of(Server(address, 4, ["en", "fr"]), tmp_path / "mono.en", tmp_path / "pairs")
    libretranslate.limit = 3
    with pytest.raises(ValueError, match="answers 24 lines with 3; a teacher gives"):
        pairs_of(teacher, tmp_path / "mono.en", tmp_path / "pairs")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://127.0.0.1:9", r"127\.0\.0\.1:9 does not answer \(.*refused"),
        ("http://localhost:abc", r"localhost:abc does not answer \(nonnumeric port"),
    ],
)
def test_a_wrong_address_is_reported_at_once(address, message):
    with pytest.raises(ValueError, match=message):
        Server(address, 4, ["en", "de"]).translate(["a"])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("no JSON", "lacks LibreTranslate's API .*Invalid JSON"),
        ("[" * 9_999, "lacks LibreTranslate's API .*Invalid JSON"),
        ("[null, null]", "lacks LibreTranslate's API .*object"),
        ('{"translatedText": "ab"}', "translatedText: Input should be a valid array"),
        ('{"translatedText": [{}, "b"]}', "translatedText: 0: Input should be a valid string"),
        ('{"translatedText": [null, null]}', "translatedText: 0: Input should be a valid string"),
        ('{"translatedText": ["a"]}', "answers 2 lines with 1; a teacher gives"),
        (
            '{"translatedText": ["a", "b"], "alternatives": [["c"]]}',
            "answers 2 lines, but 1 lists of alternatives",
        ),
        (
            '{"translatedText": ["a", "b"], "alternatives": ["cd", "ef"]}',
            "alternatives: 0: Input should be a valid array",
        ),
    ],
)
def test_an_answer_in_another_form_is_refused(answer, message, libretranslate):
    libretranslate.scripted.append((200, None, answer.encode()))
    address = f"http://127.0.0.1:{libretranslate.server_port}"
    with pytest.raises(ValueError, match=message) as caught:
        Server(address, 4, ["en", "de"]).n_best(["a", "b"])
    assert "\n" not in str(caught.value)


def test_a_server_that_has_answered_is_asked_again(libretranslate, monkeypatch):
    monkeypatch.setattr(teachers, "PAUSES", (0, 0))
    teacher = Server(f"http://127.0.0.1:{libretranslate.server_port}", 4, ["en", "de"])
    busy, cut, wrong = (429, None, b"busy"), (200, 99, b'{"tr'), (400, None, b"no")
    libretranslate.scripted[:] = [busy]
    with pytest.raises(ValueError, match="answers 429: busy"):
        teacher.translate(["ab"])
    assert teacher.translate(["ab"]) == ["ba"]
    libretranslate.scripted[:] = [busy, cut]
    assert teacher.translate(["ab"]) == ["ba"]
    libretranslate.scripted[:] = [cut, busy, (503, None, b"still\nbusy")]
    with pytest.raises(ValueError, match="answers 503: still busy; see its log"):
        teacher.translate(["ab"])
    libretranslate.scripted[:] = [wrong, busy]
    with pytest.raises(ValueError, match="answers 400: no"):
        teacher.translate(["ab"])
    assert len(libretranslate.asked) == 1 + 1 + 3 + 3 + 1


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
    pairs = pairs_of(Beams(None, 99), tmp_path / "a.tsv", tmp_path / "pairs")
    metric = sacrebleu.CHRF()
    assert [source for source, _ in pairs] == sentences
    for source, kept in pairs:
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
    pairs = pairs_of(teacher, tmp_path / "mono.en", tmp_path / "pairs")
    assert [target for _, target in pairs] == teacher.open().translate(SENTENCES)


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
    assert "has translations with another model; restore it" in capsys.readouterr().err
    text = Path("mono-0.en").read_bytes()
    for change in (text.lower(), None):
        Path("mono-0.en").unlink()
        if change:
            Path("mono-0.en").write_bytes(change)
        assert main(killed) == 2
        assert "has translations with another text; restore it" in capsys.readouterr().err
        Path("mono-0.en").write_bytes(text)
    assert main(killed) == 0


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
