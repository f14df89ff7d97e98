"""Teachers of students: a run, an export, a program, or a server with LibreTranslate's API."""

from __future__ import annotations

import functools
import http.client
import io
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError

from tfformer.data.sources import lines
from tfformer.engines import Artifact, Engine, find_artifact
from tfformer.inference import Translation
from tfformer.runtime.tensorflow import import_tensorflow
from tfformer.storage.artifact_folders import is_run
from tfformer.storage.folders import ADDRESS
from tfformer.storage.whole_files import file_digest

CANDIDATES = 4  # translations of a sentence that a server is asked for, to compare with a reference
SECONDS_TO_ANSWER = 600
PAUSES = (1, 4, 16, 64)  # seconds before a server that has failed is asked again
# At the end of its input, even after this process was killed, `sh` kills a process group.
KILL_GROUP = ("sh", "-c", 'read -r _; kill -KILL "-$0" 2> /dev/null')


class External(Engine):
    """A teacher without a vocabulary: each sentence counts as one token."""

    def __init__(self, name: str, beam_size: int = 1, languages: Sequence[str] = ()) -> None:
        super().__init__({"languages": list(languages)}, None)
        self.name = name
        self.beam_size = beam_size
        self.digest = " ".join([name, *languages])

    def open(self, threads: int | None = None) -> Self:
        """Return the teacher itself, as `Artifact.open` returns an engine."""
        return self

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return 1 for each text, 0 if it is blank; so lines keep their order."""
        return [int(bool(text.strip())) for text in texts]

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

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.folder = os.getcwd()  # workers on other machines start it there
        program = shlex.split(name)[0]
        self.digest += " " + file_digest(Path(shutil.which(program) or program))

    def answers(self, sentences: Sequence[str]) -> Iterator[str]:
        """Yield the lines that the program writes; an error or this process's death ends it."""
        with tempfile.TemporaryFile() as text:
            text.write("".join(f"{sentence}\n" for sentence in sentences).encode())
            text.seek(0)
            start = functools.partial(subprocess.Popen, cwd=self.folder, start_new_session=True)
            with (
                start(shlex.split(self.name), stdin=text, stdout=subprocess.PIPE) as process,
                start([*KILL_GROUP, str(process.pid)], stdin=subprocess.PIPE),
            ):
                assert isinstance(process.stdout, io.BufferedReader)
                yield from self._checked(sentences, lines(process.stdout, self.name))
                process.wait()
        if process.returncode:
            raise ValueError(f"{self.name} ended with exit code {process.returncode}; correct it")

    def _search(
        self, sentences: Sequence[str], beam_size: int, count: int
    ) -> list[list[Translation]]:
        return [[Translation(answer, 0.0)] for answer in self.answers(sentences)]


class Answer(BaseModel):
    """What a server answers to a list of sentences."""

    texts: list[str] = Field(alias="translatedText")
    alternatives: list[list[str]] | None = None


class Server(External):
    """The address of a server with LibreTranslate's API, such as `tfformer serve`."""

    pauses: Sequence[float] = ()  # until its first answer, so a wrong address is reported at once

    def _search(
        self, sentences: Sequence[str], beam_size: int, count: int
    ) -> list[list[Translation]]:
        source, target = self.languages
        body: dict[str, Any] = {"q": list(sentences), "source": source, "target": target}
        if count > 1:
            body["alternatives"] = count - 1
        try:
            answer = Answer.model_validate_json(self._post(json.dumps(body).encode()))
        except ValidationError as error:
            first = error.errors()[0]
            fault = ": ".join([*map(str, first["loc"]), first["msg"]])
            raise ValueError(f"{self.name} lacks LibreTranslate's API ({fault})") from None
        best = list(self._checked(sentences, iter(answer.texts)))
        alternatives = answer.alternatives or [[]] * len(best)
        if len(alternatives) != len(best):
            counts = f"{len(best)} lines, but {len(alternatives)} lists of alternatives"
            raise ValueError(f"{self.name} answers {counts}; correct the server")
        rows = zip(best, alternatives, strict=True)
        return [[Translation(text, 0.0) for text in [first, *more]] for first, more in rows]

    def _post(self, body: bytes) -> bytes:
        """Return the answer; after an error that may pass, ask again."""
        url = self.name.rstrip("/").removesuffix("/translate") + "/translate"
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        pauses = list(self.pauses)
        while True:
            try:
                with urllib.request.urlopen(request, timeout=SECONDS_TO_ANSWER) as response:
                    answer: bytes = response.read()
                self.pauses = PAUSES
                return answer
            except urllib.error.HTTPError as error:
                with error:
                    reason = " ".join(error.read(1_000).decode("utf-8", "replace").split())
                fault = f"answers {error.code}: {reason}"
                if 400 <= error.code < 500 and error.code != 429:
                    pauses.clear()
            except (OSError, ValueError, http.client.HTTPException) as error:
                fault = f"does not answer ({error})"
            if not pauses:
                raise ValueError(f"{self.name} {fault}; see its log, or correct the address")
            time.sleep(pauses.pop(0))


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
    if not os.path.isdir(name) and not ADDRESS.fullmatch(name):
        try:
            program = next(iter(shlex.split(name)), "")
        except ValueError as error:
            raise ValueError(f"the teacher {name} is not a command ({error}); correct it") from None
        if shutil.which(program) is None:
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
