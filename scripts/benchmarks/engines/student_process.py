"""Translate with one program of the measurement `students`, on request.

Arguments: PROGRAM FOLDER THREADS VOCABULARY. The Python of pymarian and fxtranslate needs neither
tfformer nor NumPy.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks._engine_process import say, say_peak_memory
from benchmarks._random_models import random_sentences

LARGEST = 32  # sentences in a batch

Translate = Callable[[list[str]], list[str]]


def tfformer(folder: Path, threads: int) -> Translate:
    """Load an export for TensorFlow or LiteRT."""
    from tfformer.engines import open_engine

    engine = open_engine(folder, threads)
    return lambda sentences: engine.translate(sentences, beam_size=1)


def ctranslate2(folder: Path, threads: int) -> Translate:
    """Load a CTranslate2 model, whose pieces are words."""
    import ctranslate2

    translator = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=threads)

    def translate(sentences: list[str]) -> list[str]:
        pieces = [f"\u2581{sentence}".replace(" ", " \u2581").split() for sentence in sentences]
        length = 2 * (len(pieces[0]) + 1)
        results = translator.translate_batch(
            pieces, beam_size=1, min_decoding_length=length, max_decoding_length=length
        )
        return [" ".join(result.hypotheses[0]) for result in results]

    return translate


def pymarian(folder: Path, threads: int) -> Translate:
    """Load a folder in Marian's format, with the shortlist that decoder.yml names."""
    import yaml
    from pymarian import Translator

    settings = yaml.safe_load((folder / "decoder.yml").read_text())
    options = {}
    if "shortlist" in settings:
        table, *limits = settings["shortlist"]
        options["shortlist"] = [str(folder / table), *map(str, limits)]
    translator = Translator(
        models=[str(folder / "model.npz")],
        vocabs=[str(folder / "vocab.spm")] * 2,
        beam_size=1,
        max_length_factor=settings["max-length-factor"],
        mini_batch=LARGEST // threads,  # each batch has one thread
        cpu_threads=threads,
        quiet=True,
        **options,
    )
    return lambda sentences: translator.translate("\n".join(sentences)).split("\n")


def fxtranslate(folder: Path, threads: int) -> Translate:
    """Load a folder in Firefox's format; the engine has one thread and no batches."""
    from fxtranslate import Translator

    vocabulary = (folder / "vocab.spm").read_bytes()
    shortlist = [path.read_bytes() for path in folder.glob("lex.bin")]
    model = (folder / "model.bin").read_bytes()
    translator = Translator(model, vocabulary, vocabulary, *shortlist)
    return lambda sentences: list(map(translator.translate, sentences))


def main(program: str, folder: str, threads: str, vocab_size: str) -> None:
    """Translate a batch for each line of standard input, the number of its sentences."""
    load = {each.__name__: each for each in (tfformer, ctranslate2, pymarian, fxtranslate)}[program]
    start = time.perf_counter()
    translate = load(Path(folder), int(threads))
    say(load_seconds=round(time.perf_counter() - start, 2))
    sentences = random_sentences(int(vocab_size))
    for line in sys.stdin:
        batch = sentences[: int(line)]
        start = time.perf_counter()
        translations = translate(batch)
        seconds = time.perf_counter() - start
        say(seconds=seconds, tokens=sum(len(text.split()) for text in translations))
    say_peak_memory()


if __name__ == "__main__":
    main(*sys.argv[1:])
