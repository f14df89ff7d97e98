"""Each kind of model put to use: how a run of it is loaded and evaluated.

A third kind is a row here, one in `run_directory.MODEL_KINDS` and one in the exporters' table,
under the same key.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tfformer.config import Architecture, Config
from tfformer.data.sources import Row
from tfformer.inference import evaluation
from tfformer.inference.generator import Generator
from tfformer.inference.translator import Translator
from tfformer.run_directory import Model, Run, Tokenizers

SAMPLES = 4  # texts shown of each evaluation


class Measured(NamedTuple):
    """The result of an evaluation."""

    figures: dict[str, float]  # by their names in a history, such as "val_bleu"
    samples: list[str]  # texts to show


class Evaluator(Protocol):
    """Measures a model, which may go on learning between two measurements."""

    def measure(self, rows: Sequence[Row]) -> Measured:
        """Measure the model on the rows of a validation text."""


class TranslationEvaluator:
    """BLEU and chrF of the validation sources, really decoded (greedily).

    Args:
        model: A `Transformer`, measured in its own dtype.
        tokenizers: Those of the model.
        config: The run's recipe, whose search, length and tokenizer of BLEU count.
    """

    def __init__(self, model: Model, tokenizers: Tokenizers, config: Config) -> None:
        self.translator = Translator(model, tokenizers, config.decoding, config.data.max_length)
        self.bleu_tokenizer = evaluation.bleu_tokenizer(config)

    def measure(self, rows: Sequence[Row]) -> Measured:
        """Translate the rows' sources and score the translations against their targets."""
        sources, references = (list(side) for side in zip(*rows, strict=True))
        translations = self.translator.translate(sources, beam_size=1)
        scores = evaluation.scores(translations, references, self.bleu_tokenizer)
        shown = [
            f"{source}\n\n> {translation}"
            for source, translation in zip(sources, translations, strict=True)
        ]
        step = max(1, len(shown) // SAMPLES)
        figures = {"val_bleu": float(scores["bleu"]), "val_chrf": float(scores["chrf"])}
        return Measured(figures, shown[::step][:SAMPLES])


class LanguageModelEvaluator:
    """Bits per byte of the validation text; samples of always the same seed.

    Args:
        model: A `LanguageModel`, measured in its own dtype.
        tokenizers: Its vocabulary.
        config: The run's recipe, whose length counts.
    """

    def __init__(self, model: Model, tokenizers: Tokenizers, config: Config) -> None:
        self.generator = Generator(model, tokenizers, config.data.max_length)

    def measure(self, rows: Sequence[Row]) -> Measured:
        """Measure the sentences that are not blank, and draw some of the model's own."""
        sentences = [sentence for (sentence,) in rows if sentence.strip()]
        drawn = self.generator.sample([""] * SAMPLES, seed=1)
        figures = {"val_bits_per_byte": self.generator.bits_per_byte(sentences)}
        return Measured(figures, [continuation.text for continuation in drawn])


class Task(NamedTuple):
    """A kind of model put to use: a row of `TASKS`."""

    load: Callable[[Run], Translator | Generator]
    evaluator: Callable[[Model, Tokenizers, Config], Evaluator]


TASKS: Mapping[Architecture, Task] = {
    "encoder-decoder": Task(Translator.of, TranslationEvaluator),
    "decoder": Task(Generator.of, LanguageModelEvaluator),
}


def task_of(config: Config) -> Task:
    """The row of `TASKS` for a recipe.

    Example:
        >>> task_of(Config()).evaluator is TranslationEvaluator
        True
    """
    return TASKS[config.model.architecture]
