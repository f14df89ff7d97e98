#!/usr/bin/env python
"""Translates on a device, without TensorFlow and without tfformer.

The folder is one that `tfformer export --format litert` has written.

    pip install ai-edge-litert sentencepiece numpy
    python translate.py models/mine < sentences > translations

The folder is that of a version, such as models/mine/1, or of all versions: the newest counts. One
sentence a line in, one translation a line out; with `--format text` a text of any form, which keeps
its paragraphs, addresses, numbers and the like (by `sentences.py` and `copies.py` beside it). What
cannot be done is one line on standard error and exit code 2.
"""

import argparse
import errno
import hashlib
import itertools
import json
import math
import os
import re
import reprlib
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

UNKNOWN_ID, END_ID = 1, 3
FILE = "model.tflite"
MANIFEST = "manifest.json"
MANIFEST_MIB = 1  # at most
TEXT, WHOLE = ("a text", str), ("a whole number", int)
VALUES = {  # of the manifest: the kind of each table's values
    "tokenizers": TEXT,
    "digests": TEXT,
    "files": WHOLE,
    "signatures": ("a table", dict),
}

Runner = Callable[..., dict]  # by name: ids (B, S) and lengths (B,), int32 -> a signature's outputs


def newest_version(folder: Path) -> Path:
    """Return the folder itself if it is a version's.

    Otherwise return the version with the highest number.
    """
    if (folder / MANIFEST).exists():
        return folder
    versions = [path.parent for path in folder.glob(f"*/{MANIFEST}")]
    numbered = [version for version in versions if version.name.isdecimal()]
    return max(numbered, key=lambda version: int(version.name), default=folder)


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read; OSError if it is a device or a pipe, which may never end."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return path.open("rb")


def manifest_text(path: Path) -> str:
    """Return the text of a manifest; ValueError if it is above 1 MiB."""
    most = MANIFEST_MIB * 2**20
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {MANIFEST_MIB} MiB, the most that a manifest may have")
    return content.decode("utf-8")


class Translator:
    """A model with its tokenizers.

    Each file must be the exported one, by the manifest's SHA-256.

    Args:
        folder: The folder of a version, or of all versions, of which the newest counts.
        threads: Threads of the interpreter.
        beam: Whether to use the beam search, if the export has it.
        weight_cache: A folder for packed weights (static files only).

    Raises:
        ValueError: A file is missing, damaged, or of another kind.
    """

    def __init__(
        self,
        folder: str | Path,
        threads: int = 1,
        beam: bool = False,
        weight_cache: str | Path | None = None,
    ) -> None:
        self._folder = newest_version(Path(folder))
        self._manifest = self._read_manifest()
        tokenizers = sorted(self._manifest["tokenizers"])  # source before target, or one for both
        self._source, self._target = self._tokenizer(tokenizers[0]), self._tokenizer(tokenizers[-1])
        self._signature = "translate_beam" if beam else "translate"
        if self._signature not in self._manifest["signatures"]:
            raise ValueError(f"{self._folder} has no beam search; export it again with --beam-size")
        self.max_length = self._manifest["decoding"]["max_length"]
        self._new_runner = self._load(threads, weight_cache)
        self._runners: dict[str, Runner] = {}

    def pieces(self, sentence: str) -> list[int]:
        """Return the sentence as ids of pieces, without start and end token."""
        return self._source.encode(sentence)

    def has(self, piece: str) -> bool:
        """Return whether a text is one piece of both vocabularies."""
        return all(is_piece(one, piece) for one in (self._source, self._target))

    def code_of(self, text: str) -> str:
        """Return the code of a language, such as `>>fra<<`, that a text begins with.

        It is empty if there is none, or if the model has no codes.
        """
        return self._source.code_of(text) if isinstance(self._source, ListedPieces) else ""

    def translate(self, rows: list[list[int]]) -> list[str]:
        """Return the translations of sentences given as pieces.

        That of an empty one is empty.
        """
        full = [row for row in rows if row]
        batches = [[row] for row in full] if self._manifest["static"] else [full] if full else []
        found = itertools.chain.from_iterable(map(self._run, batches))
        return [next(found) if row else "" for row in rows]

    def _run(self, rows: list[list[int]]) -> list[str]:
        import numpy as np

        width, name = self._width_and_name(max(map(len, rows)))
        ids = np.full(
            (len(rows), width), END_ID, np.int32
        )  # past its length a row may hold anything
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row[:width]
        if name not in self._runners:
            self._runners[name] = self._new_runner(name)
        found = self._runners[name](
            ids=ids, lengths=np.array([len(row) for row in rows], np.int32)
        )["ids"]
        best = found[:, 0] if self._signature == "translate_beam" else found
        return self._target.decode(
            [list(itertools.takewhile(lambda i: i != END_ID, row)) for row in best.tolist()]
        )

    def _width_and_name(self, longest: int) -> tuple[int, str]:
        """The width of the ids, and the signature that takes them.

        In a static file it is the narrowest that they fit in.
        """
        if not self._manifest["static"]:
            return longest, self._signature
        widths = {
            signature["inputs"]["ids"]["shape"][1]: name
            for name, signature in self._manifest["signatures"].items()
            if name == self._signature or name.removeprefix(f"{self._signature}_").isdecimal()
        }
        width = min((width for width in widths if width > longest), default=max(widths))
        return width, widths[width]

    def _read_manifest(self) -> dict:
        path = self._folder / MANIFEST
        try:
            manifest = json.loads(manifest_text(path))
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{path} cannot be read ({error}); give the folder that the export wrote"
            ) from None
        if not isinstance(manifest, dict) or manifest.get("format") != "litert":
            raise ValueError(
                f"{path} does not describe a LiteRT model; export with --format litert"
            )
        if problem := problem_of(manifest):
            raise ValueError(f"{path}: {problem}; copy the whole exported folder again")
        return manifest

    def _checked(self, name: str) -> bytes:
        """Return a file's bytes after a look at their digest; what is used is what was checked."""
        path = self._folder / name
        try:
            with open_regular(path) as file:
                content = file.read()
        except OSError as error:
            raise self._unreadable(path, error) from None
        self._check(path, hashlib.sha256(content).hexdigest())
        return content

    def _checked_path(self, name: str) -> Path:
        """Return a file's path after a look at its digest.

        The interpreter maps the file by its path, so that a device need not hold a copy of it.
        The digest finds damage; whoever replaces the file afterwards can also replace the manifest.
        """
        path = self._folder / name
        try:
            with open_regular(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise self._unreadable(path, error) from None
        self._check(path, digest)
        return path

    def _unreadable(self, path: Path, error: OSError) -> ValueError:
        return ValueError(
            f"{path} cannot be read ({error.strerror}); copy the whole exported folder"
        )

    def _check(self, path: Path, digest: str) -> None:
        if digest != self._manifest["digests"][path.name]:
            size, wanted = path.stat().st_size, self._manifest["files"][path.name]
            raise ValueError(
                f"{path} is not the file that was exported ({size:,} bytes, exported "
                f"{wanted:,}; its SHA-256 differs from the manifest's); copy the whole exported "
                "folder again"
            )

    def _tokenizer(self, name: str) -> Any:
        import sentencepiece

        content = self._checked(name)
        cutter = sentencepiece.SentencePieceProcessor(model_proto=content)
        table = f"{Path(name).stem}.pieces.json"
        if table not in self._manifest["digests"]:
            return cutter
        values = json.loads(self._checked(table))
        return ListedPieces(cutter, values["pieces"], values["prefix"], values["rewrites"])

    def _load(self, threads: int, weight_cache: str | Path | None) -> Callable[[str], Runner]:
        """The name of a signature -> what runs it."""
        file = self._checked_path(FILE)
        if weight_cache is None:
            from ai_edge_litert.interpreter import Interpreter

            return Interpreter(model_path=str(file), num_threads=threads).get_signature_runner
        if not self._manifest["static"]:
            raise ValueError(
                f"--weight-cache needs fixed shapes, which {self._folder} has not; export with "
                "--static"
            )
        try:
            Path(weight_cache).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"cannot be made ({error.strerror}); name a folder"
            raise ValueError(f"--weight-cache {weight_cache} {reason}") from None
        name = f"{self._manifest['digests'][FILE]}-{version('ai-edge-litert')}.xnnpack"
        return compiled(file, threads, Path(weight_cache) / name)


class ListedPieces:
    """SentencePiece with ids of a list: each piece is looked up as a string.

    Models that were imported into tfformer have such a list beside their SentencePiece model.

    Args:
        cutter: Cuts a sentence into pieces, and joins pieces.
        pieces: The piece of each id; the first four are padding, unknown, start and end.
        prefix: The piece that every sentence begins with, if there is one; it has no text.
        rewrites: Pairs of a regular expression and the text in its place, which come first.
    """

    def __init__(
        self, cutter: Any, pieces: list[str], prefix: str | None, rewrites: list[list[str]]
    ) -> None:
        self._cutter = cutter
        self._prefix = [] if prefix is None else [prefix]
        self._rewrites = rewrites
        self._pieces = pieces
        self._ids = {piece: number for number, piece in enumerate(pieces)}
        self._codes = [piece for piece in pieces if re.fullmatch(">>.+<<", piece)]

    def encode(self, sentence: str) -> list[int]:
        """Return the ids of a sentence, which may begin with a code such as >>fra<<."""
        for pattern, text in self._rewrites:
            sentence = re.sub(pattern, text, sentence)
        code = self.code_of(sentence)
        if code and code not in self._ids:
            known = ", ".join(self._codes[:20])
            raise ValueError(f"the model has no target language {code[:40]}; known are {known}")
        begin = [code] if code else []
        pieces = [*begin, *self._cutter.encode(sentence[len(code) :], out_type=str)]
        pieces = [*self._prefix, *pieces] if pieces else []
        return [self._ids.get(piece, UNKNOWN_ID) for piece in pieces]

    def has(self, piece: str) -> bool:
        """Return whether a text is a piece of the list."""
        return piece in self._ids

    def code_of(self, text: str) -> str:
        """Return the code that a text begins with; empty if there is none."""
        code = re.match(">>.*?<<", text, re.DOTALL) if self._codes else None
        return code[0] if code else ""

    def decode(self, rows: list[list[int]]) -> list[str]:
        """Return the texts of rows of ids; special pieces have none."""
        return [self._text(row) for row in rows]

    def _text(self, row: list[int]) -> str:
        pieces = [self._pieces[number] for number in row if number > END_ID]
        pieces = [piece for piece in pieces if piece not in self._prefix]
        return self._cutter.decode(pieces).replace("\u2581", " ").strip(" ") if pieces else ""


def is_piece(tokenizer: Any, text: str) -> bool:
    """Return whether a text is one piece of a vocabulary."""
    if isinstance(tokenizer, ListedPieces):
        return tokenizer.has(text)
    return tokenizer.piece_to_id(text) != tokenizer.unk_id()


def is_unchanged(manifest: dict[str, Any]) -> bool:
    """Return whether a manifest has its own SHA-256."""
    rest = {name: value for name, value in manifest.items() if name != "manifest_digest"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return digest == manifest.get("manifest_digest")


def problem_of(manifest: dict[str, Any]) -> str | None:
    """Return a sentence about the first value that no export writes, if there is one."""
    if not is_unchanged(manifest):
        return "it was changed after the export (its SHA-256 is not its own)"
    for name, (kind, wanted) in VALUES.items():
        table = manifest.get(name)
        if not isinstance(table, dict) or not table:
            return f"{name} must be a table; it is {reprlib.repr(table)}"
        for value in table.values():
            if not isinstance(value, wanted):
                return f"{name} has {reprlib.repr(value)}, which must be {kind}"
    if missing := {FILE, *manifest["tokenizers"]} - manifest["digests"].keys():
        return f"digests lacks {', '.join(sorted(missing))}"
    if missing := {FILE, *manifest["tokenizers"]} - manifest["files"].keys():
        return f"files lacks {', '.join(sorted(missing))}"
    if not isinstance(manifest.get("static"), bool):
        return f"static must be true or false; it is {reprlib.repr(manifest.get('static'))}"
    return problem_of_lengths(manifest)


def problem_of_lengths(manifest: dict[str, Any]) -> str | None:
    """Return a sentence about a length or shape that is not the file's.

    It is None if `max_length` and all shapes belong to the file.
    """
    decoding = manifest.get("decoding")
    longest = decoding.get("max_length") if isinstance(decoding, dict) else None
    if type(longest) is not int or longest < 2:
        return f"decoding.max_length must be a whole number from 2 on; it is {longest!r}"
    for name, signature in manifest["signatures"].items():
        if name == "translate_text":
            continue
        try:
            _, width = signature["inputs"]["ids"]["shape"]
        except (KeyError, TypeError, ValueError):
            return f"signatures.{name} has no shape of ids"
        if manifest["static"] and (type(width) is not int or not 1 <= width <= longest):
            return f"signatures.{name} takes {width!r} ids, but max_length is {longest}"
    return None


def compiled(file: Path, threads: int, packed: Path) -> Callable[[str], Runner]:
    """Run a static file by LiteRT's `CompiledModel`.

    Its weights are packed for this processor. An interpreter packs them at each start, for each
    signature anew, and keeps them in memory beside those of the file.

    Args:
        file: The LiteRT file.
        threads: Threads of the model.
        packed: The file that keeps the packed weights; written if it is missing.

    Returns:
        The name of a signature -> its runner.
    """
    if not packed.exists():
        with tempfile.TemporaryDirectory(dir=packed.parent) as new:
            _compiled_model(
                file, threads, Path(new) / packed.name
            )  # loading a model packs its weights
            (Path(new) / packed.name).replace(packed)
    model = _compiled_model(file, threads, packed)

    def runner(name: str) -> Runner:
        inputs = {key: model.create_input_buffer_by_name(name, key) for key in ("ids", "lengths")}
        details = model.get_output_tensor_details(name)
        outputs = {key: model.create_output_buffer_by_name(name, key) for key in details}
        shapes = {key: details[key]["shape"] for key in details}

        def run(**arrays: Any) -> dict:
            for key, values in arrays.items():
                inputs[key].write(values)
            model.run_by_name(name, inputs, outputs)
            return {
                key: buffer.read(math.prod(shapes[key]), details[key]["dtype"]).reshape(shapes[key])
                for key, buffer in outputs.items()
            }

        return run

    return runner


def _compiled_model(file: Path, threads: int, packed: Path) -> Any:
    from ai_edge_litert.compiled_model import (
        CompiledModel,
        CpuOptions,
        HardwareAccelerator,
        Options,
    )

    cpu_options = CpuOptions(num_threads=threads, xnnpack_weight_cache_path=str(packed))
    return CompiledModel.from_file(
        str(file), options=Options(HardwareAccelerator.CPU, cpu_options=cpu_options)
    )


class Parser(argparse.ArgumentParser):
    """Arguments of the command line, of which a wrong one is one line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        """End the program."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def sentences(lines: Iterable[bytes]) -> Iterator[str]:
    """Yield each line of UTF-8 as text; ValueError where it is none."""
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise ValueError(f"line {number} is not UTF-8; convert the text first") from None


def row_of(translator: Translator, sentence: str, name: str) -> list[int]:
    """Return a sentence as pieces; a longer one than the model takes is cut, with a warning.

    Args:
        translator: Has the pieces and the greatest length.
        sentence: A sentence.
        name: That of the sentence in the warning, such as "line 3".
    """
    row, most = translator.pieces(sentence), translator.max_length - 1
    if len(row) > most:
        cut = f"{name} has {len(row)} tokens and was cut to {most}"
        print(f"warning: {cut}", file=sys.stderr)
    return row[:most]


def print_text(translator: Translator, options: argparse.Namespace) -> None:
    """Print the translation of the text in standard input while it is read."""
    from copies import PLACEHOLDERS, Keeper, read_phrases
    from sentences import blocks, translated

    text = blocks(sys.stdin.buffer)
    beginning = next(text, "")
    code = translator.code_of(beginning)  # of the language of all its sentences
    most = translator.max_length - 1
    phrases = read_phrases(options.keep) if options.keep else []
    keeper = Keeper(phrases, list(filter(translator.has, PLACEHOLDERS)))

    def fits(sentence: str) -> bool:
        return len(translator.pieces(code + keeper.marked(sentence).text)) <= most

    def translate(sentences: list[str]) -> list[str]:
        return translator.translate([translator.pieces(code + one)[:most] for one in sentences])

    whole = itertools.chain([beginning[len(code) :]], text)
    keeping = keeper.keeping(translate)
    for piece in translated(whole, keeping, fits, options.batch_size, keeper.masked):
        sys.stdout.write(piece)
    sys.stdout.flush()


def main() -> None:
    """Translate standard input with the folder of the command line."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder",
        metavar="DIR",
        help="the folder of a version, such as models/mine/1, or of all versions: "
        "the newest counts",
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument(
        "--batch-size",
        type=int,
        default=1,
        metavar="N",
        help="sentences at a time (a dynamic model)",
    )
    parser.add_argument("--beam", action="store_true", help="beam search, if the export has it")
    cache = (
        "a folder for packed weights, which make later starts quicker and smaller (a static model)"
    )
    parser.add_argument("--weight-cache", metavar="DIR", help=cache)
    parser.add_argument(
        "--format",
        choices=("lines", "text"),
        default="lines",
        help="lines, the default: a sentence a line; text: paragraphs, divided into sentences",
    )
    parser.add_argument(
        "--keep", metavar="FILE", help="more words that come out as they went in, one a line (text)"
    )
    options = parser.parse_args()
    if options.keep and options.format != "text":
        raise ValueError("--keep goes with whole texts; set --format text")
    if min(options.threads, options.batch_size) < 1:
        raise ValueError("--threads and --batch-size must be at least 1")
    from copies import without_strays

    translator = Translator(options.folder, options.threads, options.beam, options.weight_cache)
    sys.stdout.reconfigure(encoding="utf-8", newline="")
    if options.format == "text":
        print_text(translator, options)
        return
    lines = enumerate(sentences(sys.stdin.buffer), start=1)
    while batch := list(itertools.islice(lines, options.batch_size)):
        rows = [row_of(translator, line, f"line {number}") for number, line in batch]
        found = zip(translator.translate(rows), (line for _, line in batch), strict=True)
        print(*itertools.starmap(without_strays, found), sep="\n", flush=True)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the reader, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)
    except (ValueError, KeyError, OSError, RuntimeError, ImportError) as error:
        print(f"translate.py: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
