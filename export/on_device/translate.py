#!/usr/bin/env python
"""Translates with a folder that `tfformer export --format tflite` wrote: no TensorFlow, no tfformer.

    pip install ai-edge-litert sentencepiece numpy
    python translate.py models/mine/1 < sentences > translations

One sentence a line in, one translation a line out. What cannot be done is one line on standard error and exit code 2.
"""

import argparse
import hashlib
import itertools
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

END_ID = 3
FILE = "model.tflite"

Runner = Callable[
    ..., dict
]  # by name: ids (B, S) and lengths (B,), int32 -> the outputs of a signature


class Translator:
    """A model with its tokenizers, checked against their manifest: each file must be the one that was exported."""

    def __init__(
        self,
        folder: str | Path,
        threads: int = 1,
        beam: bool = False,
        weight_cache: str | Path | None = None,
    ):
        self._folder = Path(folder)
        self._manifest = self._read_manifest()
        tokenizers = sorted(self._manifest["tokenizers"])  # source before target, or one for both
        self._source, self._target = self._tokenizer(tokenizers[0]), self._tokenizer(tokenizers[-1])
        self._signature = "translate_beam" if beam else "translate"
        if self._signature not in self._manifest["signatures"]:
            raise ValueError(f"{self._folder} has no beam search; export it again with --beam-size")
        self.max_length = self._manifest["decoding"]["max_length"]
        self._new_runner = self._load(threads, weight_cache)
        self._runners = {}

    def pieces(self, sentence: str) -> list[int]:
        return self._source.encode(sentence)

    def translate(self, rows: list[list[int]]) -> list[str]:
        """Translations of sentences, given as pieces; an empty one of an empty one."""
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
        """How wide the ids are, and the signature that takes them: in a static file the narrowest that they fit in."""
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
        path = self._folder / "manifest.json"
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{path} cannot be read ({error}); give the folder that the export wrote"
            ) from None
        parts = ("tokenizers", "signatures", "decoding", "files", "digests")
        if (
            not isinstance(manifest, dict)
            or manifest.get("format") != "tflite"
            or not all(map(manifest.get, parts))
        ):
            raise ValueError(
                f"{path} does not describe a LiteRT model; export with --format tflite"
            )
        return manifest

    def _checked(self, name: str) -> bytes:
        path = self._folder / name
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ValueError(
                f"{path} cannot be read ({error.strerror}); copy the whole exported folder"
            ) from None
        if hashlib.sha256(content).hexdigest() != self._manifest["digests"][name]:
            wanted = self._manifest["files"][name]
            raise ValueError(
                f"{path} is not the file that was exported ({len(content):,} bytes, exported {wanted:,}; "
                "its SHA-256 differs from the manifest's); copy the whole exported folder again"
            )
        return content

    def _tokenizer(self, name: str):
        import sentencepiece

        return sentencepiece.SentencePieceProcessor(model_proto=self._checked(name))

    def _load(self, threads: int, weight_cache: str | Path | None) -> Callable[[str], Runner]:
        """The name of a signature -> what runs it."""
        self._checked(FILE)
        file = self._folder / FILE
        if weight_cache is None:
            from ai_edge_litert.interpreter import Interpreter

            return Interpreter(model_path=str(file), num_threads=threads).get_signature_runner
        if not self._manifest["static"]:
            raise ValueError(
                f"--weight-cache needs fixed shapes, which {self._folder} has not; export with --static"
            )
        try:
            Path(weight_cache).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"cannot be made ({error.strerror}); name a folder"
            raise ValueError(f"--weight-cache {weight_cache} {reason}") from None
        name = f"{self._manifest['digests'][FILE]}-{version('ai-edge-litert')}.xnnpack"
        return compiled(file, threads, Path(weight_cache) / name)


def compiled(file: Path, threads: int, packed: Path) -> Callable[[str], Runner]:
    """Runs a static file by LiteRT's `CompiledModel`, with the weights as this machine's processor wants them, which
    the file `packed` keeps; it is written if it is missing.

    An interpreter packs them at each start, for each signature anew, and keeps them in memory beside those of the file.
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

        def run(**arrays) -> dict:
            for key, values in arrays.items():
                inputs[key].write(values)
            model.run_by_name(name, inputs, outputs)
            return {
                key: buffer.read(math.prod(shapes[key]), details[key]["dtype"]).reshape(shapes[key])
                for key, buffer in outputs.items()
            }

        return run

    return runner


def _compiled_model(file: Path, threads: int, packed: Path):
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


def sentences(lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise ValueError(f"line {number} is not UTF-8; convert the text first") from None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", metavar="DIR", help="what the export wrote, such as models/mine/1"
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
    options = parser.parse_args()
    if min(options.threads, options.batch_size) < 1:
        raise ValueError("--threads and --batch-size must be at least 1")
    translator = Translator(options.folder, options.threads, options.beam, options.weight_cache)
    sys.stdout.reconfigure(encoding="utf-8")
    lines, most = enumerate(sentences(sys.stdin.buffer), start=1), translator.max_length - 1
    while batch := list(itertools.islice(lines, options.batch_size)):
        rows = []
        for number, sentence in batch:
            row = translator.pieces(sentence)
            if len(row) > most:
                print(
                    f"warning: line {number} has {len(row)} tokens and was cut to {most}",
                    file=sys.stderr,
                )
            rows.append(row[:most])
        print(*translator.translate(rows), sep="\n", flush=True)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, KeyError, OSError, RuntimeError, ImportError) as error:
        print(f"translate.py: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
