"""Compare the decoding speed of an exported search with other engines, in tokens per second.

The other engines are CTranslate2, keras-hub and a decoder without a cache. Each engine runs in a
separate process with two threads and loads the same random model; keras-hub uses its layers in the
same shape. In each round the engines decode the same sentences in turn, while the others sleep. The
end token has a bias of -1e9, so every translation has the maximum length.
"""

import argparse
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._machine import spread, spread_text

if TYPE_CHECKING:
    import numpy as np

SOURCE_LENGTH = 20
TOKENS = 32
START_ID = 2
END_ID = 3
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
WITHOUT_BEAMS = ("keras-hub", "whole prefix")

Decode = Callable[[list[str], int], list[str]]  # sentences, beam size -> best translation of each
Rounds = dict[str, list[float]]  # engine -> its tokens per second in each round


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--preset", default="base", help="tiny, small, base or big")
    parser.add_argument("--vocab-size", type=int, default=32000, help="pieces per language")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32, 64], help="batch sizes")
    parser.add_argument(
        "--beam-batches", type=int, nargs="*", default=[32], help="batches decoded with 4 beams too"
    )
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds per engine")
    engines = [*EXPORTS, *CTRANSLATE2, *WITHOUT_BEAMS]
    parser.add_argument("--engines", nargs="+", default=engines, choices=engines)


def measure(options: argparse.Namespace) -> dict:
    """Return tokens per second of every engine, by batch and beam size.

    Returns:
        `tokens_per_second` of each round, their `spread` (minimum, median and maximum), and
        `ratios`, the median ratio of each of our engines to each peer.
    """
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_models_in_a_process(spawn, folder, options)
        engines = {name: Engine(spawn, name, folder, options) for name in options.engines}
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
        "tokens_per_second": speeds,
        "spread": {setting: _spreads(rounds) for setting, rounds in speeds.items()},
        "ratios": {setting: _ratios(rounds) for setting, rounds in speeds.items()},
    }


def _write_models_in_a_process(
    spawn: SpawnContext, folder: Path, options: argparse.Namespace
) -> None:
    arguments = (folder, options.preset, options.vocab_size)
    writer = spawn.Process(target=write_models, args=arguments)
    writer.start()
    writer.join()
    if writer.exitcode:
        raise SystemExit("the models could not be written; see the error above")


def _rounds(engines: dict[str, "Engine"], batch: int, beam_size: int, rounds: int) -> Rounds:
    """Measure every engine in every round, after an uncounted warm-up round."""
    speeds = {name: [] for name in engines if beam_size == 1 or name not in WITHOUT_BEAMS}
    for number in range(rounds + 1):
        for name in speeds:
            if name == "whole prefix" and number > 2:
                continue  # it takes ten times as long as the others
            time.sleep(PAUSE)
            speed = batch * TOKENS / engines[name].seconds(batch, beam_size)
            if number:
                speeds[name].append(round(speed, 1))
    for name, measured in speeds.items():
        text = spread_text(measured, "tokens/s")
        print(f"batch {batch:3} beam {beam_size} {name:28} {text}", flush=True)
    return speeds


def _spreads(rounds: Rounds) -> dict[str, dict[str, float]]:
    return {name: spread(measured) for name, measured in rounds.items()}


def _ratios(rounds: Rounds) -> dict[str, float]:
    """Return the median over the rounds of each of our engines' ratio to each peer."""
    ratios = {}
    for ours in EXPORTS:
        for theirs in (*CTRANSLATE2, *WITHOUT_BEAMS):
            if ours in rounds and theirs in rounds:
                both = zip(rounds[ours], rounds[theirs], strict=False)
                ratios[f"{ours} / {theirs}"] = round(statistics.median(a / b for a, b in both), 2)
    return ratios


class Engine:
    """A process that runs one engine and decodes on request."""

    def __init__(
        self, spawn: SpawnContext, name: str, folder: Path, options: argparse.Namespace
    ) -> None:
        self._pipe, pipe = spawn.Pipe()
        arguments = (pipe, name, folder, options)
        self._process = spawn.Process(target=_run_engine, args=arguments, daemon=True)
        self._process.start()
        pipe.close()  # so that the pipe ends when the process ends
        self.load_seconds, self.megabytes = self._pipe.recv()
        size = f", {self.megabytes:.1f} MB on disk" if self.megabytes else ""
        print(f"{name:28} loaded in {self.load_seconds:5.2f} s{size}", flush=True)

    def seconds(self, batch: int, beam_size: int) -> float:
        """Decode one batch and return the duration in seconds."""
        self._pipe.send((batch, beam_size))
        return self._pipe.recv()

    def stop(self) -> dict[str, float]:
        """End the process; return its loading time, size on disk and peak memory."""
        self._pipe.send(None)
        peak = self._pipe.recv()
        self._process.join()
        return {
            "load_seconds": self.load_seconds,
            "megabytes": self.megabytes,
            "peak_memory_megabytes": peak,
        }


def _run_engine(pipe: Connection, name: str, folder: Path, options: argparse.Namespace) -> None:
    """Run the loop of an engine's process."""
    start = time.perf_counter()
    decode, path = _load(name, folder, options)
    pipe.send((round(time.perf_counter() - start, 2), _megabytes(path)))
    sentences = random_sentences(options.vocab_size)
    while asked := pipe.recv():
        batch, beam_size = asked
        start = time.perf_counter()
        translations = decode(sentences[:batch], beam_size)
        pipe.send(time.perf_counter() - start)
        assert len(translations) == batch
    pipe.send(round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def _load(name: str, folder: Path, options: argparse.Namespace) -> tuple[Decode, Path | None]:
    if name in CTRANSLATE2:
        return _ctranslate2(folder / "ctranslate2", CTRANSLATE2[name]), folder / "ctranslate2"
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0" if name == WITHOUT_ONEDNN else "1"
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    if name in EXPORTS:
        return load_saved_model(folder / EXPORTS[name]), folder / EXPORTS[name]
    load = {"keras-hub": _keras_hub, "whole prefix": _whole_prefix}[name]
    return load(options), None


def _megabytes(path: Path | None) -> float | None:
    if path is None:
        return None
    count = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return round(count / 1e6, 1)


def random_sentences(vocab_size: int, count: int = 64) -> list[str]:
    """Return sentences of `SOURCE_LENGTH` - 1 words, each of which is one piece."""
    import random

    dice = random.Random(1)
    sentences = []
    for _ in range(count):
        words = [f"w{dice.randrange(4, vocab_size)}" for _ in range(SOURCE_LENGTH - 1)]
        sentences.append(" ".join(words))
    return sentences


def vocabulary(vocab_size: int) -> bytes:
    """Return a SentencePiece model with one piece for each of the words w4, w5, ..."""
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    kinds = sentencepiece_model_pb2.ModelProto.SentencePiece.Type
    special = {
        "<pad>": kinds.CONTROL,
        "<unk>": kinds.UNKNOWN,
        "<s>": kinds.CONTROL,
        "</s>": kinds.CONTROL,
    }
    for piece, kind in special.items():
        model.pieces.add(piece=piece, score=0.0, type=kind)
    for number in range(len(special), vocab_size):
        model.pieces.add(piece=f"\u2581w{number}", score=-1.0)
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    model.trainer_spec.vocab_size = vocab_size
    model.trainer_spec.pad_id, model.trainer_spec.unk_id = 0, 1
    model.trainer_spec.bos_id, model.trainer_spec.eos_id = 2, 3
    model.normalizer_spec.name = "identity"
    return model.SerializeToString()


def write_models(folder: Path, preset: str, vocab_size: int) -> None:
    """Write the random model as SavedModels and for CTranslate2, one folder per format."""
    import numpy as np

    from tfformer import Transformer
    from tfformer.config import PRESETS
    from tfformer.data.tokenizers import Tokenizer
    from tfformer.export import ctranslate2 as ctranslate2_export
    from tfformer.export.saved_model import writer as saved_model_writer
    from tfformer.inference.translator import Translator

    tokenizer = Tokenizer(vocabulary(vocab_size))
    shape = PRESETS[preset] | {"tie_embeddings": "all", "dialect": {"output_bias": True}}
    model = Transformer(vocab_size, vocab_size, **shape)
    model.output_bias.assign(-1e9 * np.eye(vocab_size)[END_ID])
    translator = Translator(model, tokenizer, length_penalty=0.0, max_length=TOKENS)
    for dtype in ("bfloat16", "float32"):
        saved_model_writer.write(folder / dtype, translator, dtype, with_text=True)
    (folder / "ctranslate2").mkdir()
    ctranslate2_export.write(folder / "ctranslate2", model, translator.tokenizers, TOKENS)


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


def _ctranslate2(folder: Path, compute_type: str) -> Decode:
    import ctranslate2

    translator = ctranslate2.Translator(
        str(folder), compute_type=compute_type, inter_threads=1, intra_threads=THREADS
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


def _ids(sentences: list[str]) -> "np.ndarray":
    """Return the ids (B, S) int32 of sentences with equally many words, end token included."""
    import numpy as np

    rows = []
    for sentence in sentences:
        ids = [int(word.removeprefix("w")) for word in sentence.split()]
        rows.append([*ids, END_ID])
    return np.array(rows, np.int32)


def _whole_prefix(options: argparse.Namespace) -> Decode:
    """Return our model without a cache, which recomputes all target positions for each token."""
    import tensorflow as tf

    from tfformer import Transformer
    from tfformer.config import PRESETS

    model = Transformer(
        options.vocab_size,
        options.vocab_size,
        **PRESETS[options.preset] | {"tie_embeddings": "all"},
    )

    @tf.function(input_signature=[tf.TensorSpec((None, None), tf.int32)])
    def search(source: tf.Tensor) -> tf.Tensor:
        memory, mask = model.encode(source)
        target = tf.fill((tf.shape(source)[0], 1), START_ID)
        for _ in tf.range(TOKENS):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(target, tf.TensorShape((None, None)))]
            )
            logits = model.decode(target, memory, mask)[:, -1]
            target = tf.concat([target, tf.argmax(logits, -1, tf.int32)[:, tf.newaxis]], axis=1)
        return target

    return lambda sentences, beam_size: list(search(_ids(sentences)).numpy())


def _keras_hub(options: argparse.Namespace) -> Decode:
    """Return keras-hub's layers with their caches in one graph, as in keras-hub's `generate`."""
    import keras
    import keras_hub
    import tensorflow as tf

    from tfformer.config import PRESETS

    shape = PRESETS[options.preset]
    d_model = shape["d_model"]
    heads = shape["num_heads"]
    layers = shape["num_layers"]
    embedding = keras_hub.layers.TokenAndPositionEmbedding(
        options.vocab_size, SOURCE_LENGTH + TOKENS, d_model
    )
    encoders = [keras_hub.layers.TransformerEncoder(shape["d_ff"], heads) for _ in range(layers)]
    decoders = [keras_hub.layers.TransformerDecoder(shape["d_ff"], heads) for _ in range(layers)]
    output = keras.layers.Dense(options.vocab_size)

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

    return lambda sentences, beam_size: list(search(_ids(sentences)).numpy())
