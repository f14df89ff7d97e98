"""Teachers of students: a run, an export, a program, or a server with LibreTranslate's API."""

from __future__ import annotations

import io
import itertools
import json
import shlex
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from tfformer.data.sources import lines, read_lines
from tfformer.engines import Artifact, Engine, find_artifact
from tfformer.inference import Translation
from tfformer.runtime.tensorflow import import_tensorflow
from tfformer.storage.artifact_folders import is_run
from tfformer.storage.folders import ADDRESS

CANDIDATES = 4  # translations of a sentence that a server is asked for, to compare with a reference
SECONDS_TO_ANSWER = 600
TRIAL = 8  # sentences that a program or a server translates before the work begins


class External(Engine):
    """A teacher without a vocabulary: each sentence counts as one token."""

    def __init__(self, name: str, beam_size: int = 1, languages: Sequence[str] = ()) -> None:
        super().__init__({"languages": list(languages)}, None)
        self.name = name
        self.beam_size = beam_size
        self.digest = " ".join([name, *languages])  # there are no files to compare

    def open(self, threads: int | None = None) -> Self:
        """Return the teacher itself, as `Artifact.open` returns an engine."""
        return self

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return 1 for each text, 0 if it is blank; so lines keep their order."""
        return [int(bool(text.strip())) for text in texts]

    def try_on(self, text: Path) -> None:
        """Raise ValueError unless the first sentences of a text are translated."""
        sentences = (line.partition("\t")[0] for line in read_lines(text))
        self.translate(list(itertools.islice(filter(str.strip, sentences), TRIAL)))

    def _checked(self, sentences: Sequence[str], answers: Iterator[str]) -> Iterator[str]:
        """Yield the answers; raise ValueError if their number differs or an answer is blank."""
        rule = f"answers {len(sentences)} lines with {{}}; a teacher gives one line for each line"
        for number, sentence in enumerate(sentences):
            answer = next(answers, None)
            if answer is None:
                raise ValueError(f"{self.name} {rule.format(number)}")
            if not answer.strip():
                raise ValueError(
                    f"{self.name} answers {sentence!r} with an empty line; leave this sentence out"
                )
            yield answer
        if next(answers, None) is not None:
            raise ValueError(f"{self.name} {rule.format('more')}")


class Program(External):
    """A command, quoted as in a shell, that writes a line for each line that it reads."""

    def answers(self, sentences: Sequence[str]) -> Iterator[str]:
        """Start the program for these sentences, and yield the lines as it writes them."""
        with tempfile.TemporaryFile() as text:
            text.write("".join(f"{sentence}\n" for sentence in sentences).encode())
            text.seek(0)
            command = shlex.split(self.name)
            with subprocess.Popen(command, stdin=text, stdout=subprocess.PIPE) as process:
                assert isinstance(process.stdout, io.BufferedReader)
                yield from self._checked(sentences, lines(process.stdout, self.name))
        if process.returncode:
            raise ValueError(f"{self.name} ended with exit code {process.returncode}; correct it")

    def _search(
        self, sentences: Sequence[str], beam_size: int, count: int
    ) -> list[list[Translation]]:
        return [[Translation(answer, 0.0)] for answer in self.answers(sentences)]


class Server(External):
    """The address of a server with LibreTranslate's API, such as `tfformer serve`."""

    def _search(
        self, sentences: Sequence[str], beam_size: int, count: int
    ) -> list[list[Translation]]:
        source, target = self.languages
        body: dict[str, Any] = {"q": list(sentences), "source": source, "target": target}
        if count > 1:
            body["alternatives"] = count - 1
        url = self.name.rstrip("/").removesuffix("/translate") + "/translate"
        json_type = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, json.dumps(body).encode(), json_type)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_TO_ANSWER) as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            reason = error.read(1_000).decode("utf-8", "replace")
            raise ValueError(f"{self.name} answers {error.code}: {reason}") from None
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.name} does not answer in JSON ({error})") from None
        best = answer.get("translatedText") if isinstance(answer, dict) else None
        if not isinstance(best, list) or not all(isinstance(text, str) for text in best):
            raise ValueError(f"{self.name} does not answer a list q with a list translatedText")
        texts = [[text] for text in self._checked(sentences, iter(best))]
        for row, others in zip(texts, answer.get("alternatives") or [], strict=False):
            row += others
        return [[Translation(text, 0.0) for text in row] for row in texts]


Teacher = Artifact | Program | Server


def find_teacher(
    name: str, beam_size: int | None = None, languages: Sequence[str] | None = None
) -> Teacher:
    """Find a teacher without loading it: a folder, an address, or otherwise a command.

    `beam_size` is also the number of candidates of a server. ValueError: there is no such teacher,
    or it does not translate between the `languages` of the student.
    """
    if name.startswith(("http://", "https://")):
        if languages is None:
            raise ValueError(f"{name} needs two languages; set data.languages, such as [en, de]")
        return Server(name, beam_size or CANDIDATES, languages)
    if not Path(name).is_dir() and not ADDRESS.fullmatch(name):
        if shutil.which(next(iter(shlex.split(name)), "")) is None:
            raise ValueError(
                f"the teacher {name} is neither a run directory, an export, an address such as "
                "http://localhost:5000, nor a program; correct it, or make the program executable"
            )
        if beam_size:
            raise ValueError(f"--beam-size needs a model or a server, and {name} is a program")
        return Program(name)
    if is_run(name):
        import_tensorflow()
    model = find_artifact(name, beam_size)
    if model.languages and languages and list(model.languages) != list(languages):
        raise ValueError(
            f"the teacher {name} translates {' to '.join(model.languages)}, but data.languages is "
            f"[{', '.join(languages)}]; use another teacher, or correct the recipe"
        )
    return model
