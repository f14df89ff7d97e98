"""Compare the decoding speed of an exported search with other engines, in tokens per second.

The other engines are CTranslate2 and keras-hub. Each engine runs in a separate process with two
threads and loads the same random model; keras-hub uses its layers in the same shape. In each round
the engines decode the same sentences in turn, while the others sleep.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from operator import truediv
from pathlib import Path
from typing import Any

from benchmarks._engine_process import SCRIPTS, EngineProcess, say, say_peak_memory
from benchmarks._machine import spread, spread_text
from benchmarks._random_models import (
    END_ID,
    SOURCE_LENGTH,
    TOKENS,
    ids_of,
    random_sentences,
    random_translator,
)

START_ID = 2
THREADS = 2
PAUSE = 0.5  # seconds between two engines, so that the threads of the first go to sleep
# Without oneDNN, each matrix product has less overhead, but products of many rows are slower.
WITHOUT_ONEDNN = "tfformer float32, oneDNN off"
EXPORTS = {
    "tfformer float32": "float32",
    WITHOUT_ONEDNN: "float32",
    "tfformer bfloat16": "bfloat16",
}
CTRANSLATE2 = {"ctranslate2 float32": "float32", "ctranslate2 int8": "int8"}
KERAS_HUB = "keras-hub"  # has no beams

Decode = Callable[[list[str], int], list[str]]  # sentences, beam size -> best translation of each
Rounds = dict[str, list[float]]  # engine -> its tokens per second in each round


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--preset", default="base", help="tiny, small, base or big")
    parser.add_argument("--vocab-size", type=int, default=32000, help="pieces per language")
    parser.add_argument(
        "--batches",
        type=int,
        nargs="+",
        default=[1, 32, 64],
        choices=range(1, 65),
        metavar="N",
        help="batch sizes, at most 64",
    )
    parser.add_argument(
        "--beam-batches", type=int, nargs="*", default=[32], help="batches decoded with 4 beams too"
    )
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds per engine")
    engines = [*EXPORTS, *CTRANSLATE2, KERAS_HUB]
    parser.add_argument("--engines", nargs="+", default=engines, choices=engines)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return tokens per second of every engine, by batch and beam size.

    Returns:
        `tokens_per_second` of each round, their `spread` (minimum, median and maximum), and
        `ratios`, the median ratio of each of our engines to each peer.
    """
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(_command("write", folder, options), cwd=SCRIPTS, check=True)
        engines = {name: _engine(name, folder, options) for name in options.engines}
        work = [(batch, 1) for batch in options.batches]
        work += [(batch, 4) for batch in options.beam_batches]
        speeds = {}
        for batch, beam_size in work:
            setting = f"batch {batch}, beam {beam_size}"
            speeds[setting] = _rounds(engines, batch, beam_size, options.rounds)
        about = {name: engine.stop() for name, engine in engines.items()}
    return {
        "preset": options.preset,
        "tokens": TOKENS,
        "engines": about,
    } | summary(speeds, [(ours, peer) for ours in EXPORTS for peer in (*CTRANSLATE2, KERAS_HUB)])


def summary(speeds: dict[str, Rounds], pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the speeds by setting, their spread, and the ratios of the pairs of engines."""
    return {
        "tokens_per_second": speeds,
        "spread": {
            setting: {name: spread(measured) for name, measured in rounds.items()}
            for setting, rounds in speeds.items()
        },
        "ratios": {
            setting: {
                f"{ours} / {peer}": _median_ratio(rounds[ours], rounds[peer])
                for ours, peer in pairs
                if {ours, peer} <= rounds.keys()
            }
            for setting, rounds in speeds.items()
        },
    }


def _median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return round(statistics.median(map(truediv, ours, theirs)), 2)


def _command(task: str, folder: str, options: argparse.Namespace) -> list[str]:
    """Return the command line that runs this module as a program."""
    arguments = [task, folder, options.preset, str(options.vocab_size)]
    return [sys.executable, "-m", "benchmarks.decode", *arguments]


def _engine(name: str, folder: str, options: argparse.Namespace) -> EngineProcess:
    onednn = "0" if name == WITHOUT_ONEDNN else "1"
    command = _command(name, folder, options)
    engine = EngineProcess(name, command, {"TF_ENABLE_ONEDNN_OPTS": onednn})
    print(f"{name:28} {engine.about}", flush=True)
    return engine


def _rounds(engines: dict[str, EngineProcess], batch: int, beam_size: int, rounds: int) -> Rounds:
    """Measure every engine in every round, after an uncounted warm-up round."""
    speeds: Rounds = {name: [] for name in engines if beam_size == 1 or name != KERAS_HUB}
    for number in range(rounds + 1):
        for name in speeds:
            time.sleep(PAUSE)
            seconds = engines[name].work(f"{batch} {beam_size}")["seconds"]
            speed = batch * TOKENS / seconds
            if number:
                speeds[name].append(round(speed, 1))
    for name, measured in speeds.items():
        text = spread_text(measured, "tokens/s")
        print(f"batch {batch:3} beam {beam_size} {name:28} {text}", flush=True)
    return speeds


def run_engine(name: str, folder: Path, preset: str, vocab_size: int) -> None:
    """Decode a batch for each line of standard input, "ROWS BEAMS", and print the figures."""
    start = time.perf_counter()
    decode = _load(name, folder, preset, vocab_size)
    say(load_seconds=round(time.perf_counter() - start, 2))
    sentences = random_sentences(vocab_size)
    for line in sys.stdin:
        batch, beam_size = map(int, line.split())
        start = time.perf_counter()
        translations = decode(sentences[:batch], beam_size)
        say(seconds=time.perf_counter() - start)
        assert len(translations) == batch
    say_peak_memory()


def _load(name: str, folder: Path, preset: str, vocab_size: int) -> Decode:
    if name in CTRANSLATE2:
        return load_ctranslate2(folder / "ctranslate2", CTRANSLATE2[name])
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    if name == KERAS_HUB:
        return _keras_hub(preset, vocab_size)
    return load_saved_model(folder / EXPORTS[name])


def write_models(folder: Path, preset: str, vocab_size: int) -> None:
    """Write the random model as SavedModels and for CTranslate2, one folder per format."""
    from tfformer.export import ctranslate2 as ctranslate2_export
    from tfformer.export.saved_model import writer as saved_model_writer

    translator = random_translator(preset, vocab_size)
    for dtype in ("bfloat16", "float32"):
        saved_model_writer.write(folder / dtype, translator, dtype, with_text=True)
    (folder / "ctranslate2").mkdir()
    ctranslate2_export.write(
        folder / "ctranslate2", translator.model, translator.tokenizers, TOKENS
    )


def load_saved_model(folder: Path) -> Decode:
    """Return a function that decodes with an exported SavedModel."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  its operations

    model = tf.saved_model.load(str(folder))

    def decode(sentences: list[str], beam_size: int) -> list[str]:
        text = tf.constant(sentences)
        if beam_size == 1:
            best = model.signatures["serving_default"](text=text)["translation"]
        else:
            best = model.signatures["translate_beam"](text=text)["translations"][:, 0]
        return list(best.numpy())

    return decode


def load_ctranslate2(folder: Path, compute_type: str, device: str = "cpu") -> Decode:
    """Return a function that decodes with CTranslate2; the device "auto" is a GPU, if any."""
    import ctranslate2

    translator = ctranslate2.Translator(
        str(folder), device, compute_type=compute_type, inter_threads=1, intra_threads=THREADS
    )

    def decode(sentences: list[str], beam_size: int) -> list[str]:
        pieces = [f"\u2581{sentence}".replace(" ", " \u2581").split() for sentence in sentences]
        results = translator.translate_batch(
            pieces,
            beam_size=beam_size,
            length_penalty=0,
            min_decoding_length=TOKENS,
            max_decoding_length=TOKENS,
        )
        return [" ".join(result.hypotheses[0]) for result in results]

    return decode


def _keras_hub(preset: str, vocab_size: int) -> Decode:
    """Return keras-hub's layers with their caches in one graph, as in keras-hub's `generate`."""
    import keras
    import keras_hub
    import tensorflow as tf

    from tfformer.config import PRESETS

    shape = PRESETS[preset]
    d_model = shape["d_model"]
    heads = shape["num_heads"]
    layers = shape["num_layers"]
    embedding = keras_hub.layers.TokenAndPositionEmbedding(
        vocab_size, SOURCE_LENGTH + TOKENS, d_model
    )
    encoders = [keras_hub.layers.TransformerEncoder(shape["d_ff"], heads) for _ in range(layers)]
    decoders = [keras_hub.layers.TransformerDecoder(shape["d_ff"], heads) for _ in range(layers)]
    output = keras.layers.Dense(vocab_size)

    @tf.function(input_signature=[tf.TensorSpec((None, SOURCE_LENGTH), tf.int32)])
    def search(source: tf.Tensor) -> tf.Tensor:
        memory = embedding(source)
        for encoder in encoders:
            memory = encoder(memory)
        rows = tf.shape(source)[0]
        empty = tf.zeros((rows, 2, TOKENS, heads, d_model // heads))
        empty_cross = tf.zeros((rows, 2, SOURCE_LENGTH, heads, d_model // heads))
        last = tf.fill((rows, 1), START_ID)
        caches = [empty] * layers
        memories = []
        for decoder in decoders:  # the first call projects the memory
            *_, projected = decoder(
                embedding(last), memory,
                self_attention_cache=empty, self_attention_cache_update_index=0,
                cross_attention_cache=empty_cross, cross_attention_cache_update_index=0,
            )  # fmt: skip
            memories.append(projected)
        written = tf.TensorArray(tf.int32, TOKENS)
        for step in tf.range(TOKENS):
            x = embedding(last, start_index=step)
            new = []
            for decoder, cache, projected in zip(decoders, caches, memories, strict=True):
                x, cache, _ = decoder(
                    x, memory, self_attention_cache=cache, self_attention_cache_update_index=step,
                    cross_attention_cache=projected, cross_attention_cache_update_index=None,
                )  # fmt: skip
                new.append(cache)
            caches = new
            last = tf.argmax(output(x), -1, tf.int32)
            written = written.write(step, last[:, 0])
        return tf.transpose(written.stack())

    def decode(sentences: list[str], beam_size: int) -> list[str]:
        ids = tf.constant([[*ids_of(sentence), END_ID] for sentence in sentences])
        return list(search(ids).numpy())

    return decode


if __name__ == "__main__":
    task, folder, preset, vocab_size = sys.argv[1:]
    if task == "write":
        write_models(Path(folder), preset, int(vocab_size))
    else:
        run_engine(task, Path(folder), preset, int(vocab_size))
