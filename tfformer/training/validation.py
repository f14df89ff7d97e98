"""How good a model is on the validation text, and which of its weights are kept. Knows no optimizer's settings."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

from tfformer.config import Config
from tfformer.data.batches import Batches
from tfformer.data.sources import Sides
from tfformer.inference import evaluation
from tfformer.inference.generator import Generator
from tfformer.inference.translator import Translator
from tfformer.model.losses import SmoothedCrossEntropy
from tfformer.run_directory import Model, Run, Tokenizers

SAMPLES = 4  # texts shown after each validation


class Deciding(NamedTuple):
    """A figure that decides which weights are kept."""

    label: str
    sign: int  # 1 if more is better, -1 if less is


DECIDING = {"val_bleu": Deciding("BLEU", 1), "val_bits_per_byte": Deciding("bits per byte", -1)}

Measured = tuple[
    dict[str, float], list[str]
]  # figures by their names in the history, and sample texts


def is_validated(epoch: dict) -> bool:
    """Whether a validation stood at the end of this epoch of a history."""
    return any(name in epoch for name in DECIDING)


def quality(epoch: dict) -> float:
    """The figure that decides which weights are kept, so that more is better; -inf without a validation."""
    return max(
        (figure.sign * epoch[name] for name, figure in DECIDING.items() if name in epoch),
        default=-math.inf,
    )


def best_epoch(history: Sequence[dict]) -> dict:
    """The epoch whose weights are kept."""
    return max(history, key=quality)


def validations_since_best(history: Sequence[dict]) -> int:
    """How many validations have not been better than the best one before them."""
    validated = list(filter(is_validated, history))
    return len(validated) - 1 - validated.index(best_epoch(validated)) if validated else 0


class TranslationQuality:
    """BLEU and chrF of the validation sources, really decoded (greedily)."""

    def __init__(self, model: Model, tokenizers: Tokenizers, config: Config):
        self.translator = Translator(model, tokenizers, config.decoding, config.data.max_length)

    def measure(self, rows: Sequence[Sides]) -> Measured:
        sources, references = (list(side) for side in zip(*rows, strict=True))
        translations = self.translator.translate(sources, beam_size=1)
        scores = evaluation.scores(translations, references)
        shown = [
            f"{source}\n\n> {translation}"
            for source, translation in zip(sources, translations, strict=True)
        ]
        step = max(1, len(shown) // SAMPLES)
        return {"val_bleu": scores["bleu"], "val_chrf": scores["chrf"]}, shown[::step][:SAMPLES]


class LanguageModelQuality:
    """Bits per byte of the validation text; the samples are drawn with always the same seed."""

    def __init__(self, model: Model, tokenizers: Tokenizers, config: Config):
        self.generator = Generator(model, tokenizers, config.data.max_length)

    def measure(self, rows: Sequence[Sides]) -> Measured:
        sentences = [sentence for (sentence,) in rows if sentence.strip()]
        shown = [
            continuation.text for continuation in self.generator.sample([""] * SAMPLES, seed=1)
        ]
        return {"val_bits_per_byte": self.generator.bits_per_byte(sentences)}, shown


QUALITIES = {"encoder-decoder": TranslationQuality, "decoder": LanguageModelQuality}


class Validation(keras.callbacks.Callback):
    """Loss and quality on the validation text; keeps the weights with the best quality."""

    def __init__(
        self,
        run: Run,
        config: Config,
        tokenizers: Tokenizers,
        valid: Batches,
        rows: Sequence[Sides],
        report: Callable[[str], None],
    ):
        super().__init__()
        self.run = run
        self.config = config
        self.tokenizers = tokenizers
        self.valid = valid
        self.rows = rows
        self.report = report

    def on_train_begin(self, logs: dict | None = None) -> None:
        settings = self.config.training
        self.averaged = type(self.model).from_config(self.model.get_config())
        self.averaged.compile(
            None, SmoothedCrossEntropy(settings.label_smoothing), jit_compile=settings.jit_compile
        )
        self.quality = QUALITIES[self.config.model.architecture](
            self.averaged, self.tokenizers, self.config
        )
        self.writer = tf.summary.create_file_writer(str(self.run.tensorboard / "samples"))
        self.best = max(map(quality, self.run.history()), default=-math.inf)

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        settings = self.config.training
        is_last = self.model.stop_training or epoch + 1 == settings.epochs
        if (epoch + 1) % settings.validate_every and not is_last:
            return
        self._average()
        logs |= self._figures(epoch)
        if quality(logs) > self.best:
            self.best = quality(logs)
            self.run.save_weights(self.averaged)

    def _average(self) -> None:
        """The weights, or their moving average if the optimizer keeps one, into the model that is validated."""
        self.averaged.set_weights(self.model.get_weights())
        self.model.optimizer.finalize_variable_values(self.averaged.trainable_variables)

    def _figures(self, epoch: int) -> dict[str, float]:
        loss = self.averaged.evaluate(
            self.valid.dataset(), steps=self.valid.steps_per_epoch, verbose=0
        )
        measured, samples = self.quality.measure(self.rows)
        with self.writer.as_default():
            tf.summary.text("samples", samples, step=epoch)
        figures = {"val_loss": loss} | measured
        self.report("".join(f" - {name}: {value:.4g}" for name, value in figures.items()))
        return figures
