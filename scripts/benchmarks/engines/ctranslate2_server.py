"""CTranslate2 behind the small server of export/on_device, to be measured beside LiteRT.

python ctranslate2_server.py EXPORT PORT
"""

import importlib.util
import json
import sys
from pathlib import Path

import ctranslate2
import sentencepiece
from aiohttp import web

SERVE = Path(__file__).parents[3] / "export" / "on_device" / "serve.py"
WORKERS = 2
BATCH = 32  # sentences that run together; with 16 or 64 it is slower, or no faster


class Translator:
    """A model of CTranslate2 in int8, greedy, with one thread.

    Args:
        folder: The folder of a version.
    """

    def __init__(self, folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        names = sorted(manifest["tokenizers"])
        self._source, self._target = (
            sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
            for name in (names[0], names[-1])
        )
        self.max_length = manifest["decoding"]["max_length"]
        self._model = ctranslate2.Translator(
            str(folder), compute_type="int8", inter_threads=1, intra_threads=1
        )

    def pieces(self, sentence: str) -> list[int]:
        """Return a sentence as ids of pieces."""
        return self._source.encode(sentence)

    def has(self, piece: str) -> bool:
        """Return whether a text is one piece of both vocabularies."""
        sides = (self._source, self._target)
        return all(side.piece_to_id(piece) != side.unk_id() for side in sides)

    def code_of(self, text: str) -> str:
        """Return nothing: the model has one target language."""
        return ""

    def translate(self, rows: list[list[int]]) -> list[str]:
        """Return the translations of rows of pieces."""
        found = self._model.translate_batch(
            list(map(self._source.id_to_piece, rows)),
            beam_size=1,
            length_penalty=0,
            max_decoding_length=self.max_length,
            min_decoding_length=0,
        )
        return [self._target.decode(one.hypotheses[0]) for one in found]


def main() -> None:
    """Serve the export of the command line."""
    spec = importlib.util.spec_from_file_location("serve", SERVE)
    assert spec is not None
    assert spec.loader is not None
    serve = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(serve)
    folder = serve.newest_version(Path(sys.argv[1]))
    workers = serve.Workers([Translator(folder) for _ in range(WORKERS)], BATCH)
    web.run_app(serve.Server(workers, []).application(), host="127.0.0.1", port=int(sys.argv[2]))


if __name__ == "__main__":
    main()
