"""The base class of trained models over strings: loading, measuring, saving, exporting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import tensorflow as tf

from tfformer.config import Architecture, Config
from tfformer.data.encoding import EncodedSentences, Sentences, encode_truncated
from tfformer.data.sources import Row
from tfformer.data.tokenizers import Tokenizer
from tfformer.inference.shortlist import Shortlist
from tfformer.run_directory import Calibration, Model, Run, Tokenizers, new_model, settings_of
from tfformer.runtime.tracing import traced
from tfformer.storage.artifact_folders import RUN_CONFIG, empty_folder
from tfformer.storage.whole_files import new_folder

SAMPLES = 4  # texts shown per evaluation
DAMAGED = "the model's score for a sentence is not finite: its weights are damaged; train again"


class Measured(NamedTuple):
    """The result of an evaluation."""

    figures: dict[str, float]  # figures by their names in a history, such as "val_bleu"
    samples: list[str]  # texts to show


def check_size(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Raise ValueError unless a tokenizer has as many pieces as the model expects."""
    if tokenizer.vocab_size != vocab_size:
        raise ValueError(
            f"a tokenizer of {tokenizer.vocab_size} pieces does not fit a model for {vocab_size}; "
            "pass the tokenizer that the model was trained with"
        )


def check_finite(scores: np.ndarray) -> None:
    """Raise ValueError if a model's scores contain NaN or an infinity."""
    if not np.isfinite(scores).all():
        raise ValueError(DAMAGED)


class TextModel(ABC):
    """A trained model with its tokenizers: `Translator` or `Generator`."""

    architecture: ClassVar[Architecture]  # the kind of model, a key of `run_directory.MODEL_KINDS`
    model: Model  # the model
    tokenizers: Tokenizers  # the tokenizers of source and target
    max_length: int  # maximum number of tokens of a sentence, the end token included
    shortlist: Shortlist | None = None  # the candidates of a translator's search; None for all
    calibration: Calibration | None = None  # of a translator's confidences; None if not calibrated

    _graphs: dict[tuple[Any, ...], tf.types.experimental.PolymorphicFunction]

    @classmethod
    @abstractmethod
    def for_recipe(cls, model: Model, tokenizers: Tokenizers, config: Config) -> Self:
        """Wrap a model, with the limits and the search of a recipe."""

    @classmethod
    def of(cls, run: Run) -> Self:
        """Load an opened run, with its best weights and its decoding settings."""
        run.check_architecture(cls.architecture)
        model = cls.for_recipe(run.load_model(), run.tokenizers, run.config)
        table = run.load_shortlist()
        if table is not None:
            model.shortlist = Shortlist(table, run.tokenizers.target.vocab_size)
        model.calibration = run.calibration
        return model

    @property
    def temperature(self) -> float:
        """The temperature of the confidences; 1 if they are not calibrated."""
        return self.calibration.temperature if self.calibration else 1.0

    @abstractmethod
    def with_model(self, model: Model) -> Self:
        """Return a copy with another model, which has the same vocabularies."""

    @abstractmethod
    def measure(self, rows: Sequence[Row], config: Config) -> Measured:
        """Measure the model with its current weights on the rows of a validation text."""

    def _graph(
        self, function: Callable[..., Any], *inputs: tf.TensorSpec, **settings: Any
    ) -> tf.types.experimental.PolymorphicFunction:
        """Return the graph of `function(model, ids, *inputs, **settings)`, with ids (rows, tokens).

        It is traced once for the same settings.
        """
        key = (function, *settings.values())
        if key not in self._graphs:

            def called(ids: tf.Tensor, *values: tf.Tensor) -> Any:
                return function(self.model, ids, *values, **settings)

            ids = tf.TensorSpec((None, None), tf.int32)
            self._graphs[key] = traced(called, input_signature=[ids, *inputs])
        return self._graphs[key]

    def encode(self, sentences: Sentences) -> EncodedSentences:
        """Encode texts (of a translator, the sources), truncated to the model's length.

        Args:
            sentences: B texts; encoded sentences are returned unchanged.

        Returns:
            Ids without start and end tokens, and which texts were truncated.

        Raises:
            ValueError: A sentence is not Unicode text.
        """
        return encode_truncated(self.tokenizers.source, sentences, self.max_length - 1)

    def search_settings(self) -> dict[str, Any]:
        """Return the section `decoding` of the model's recipe; empty for a language model."""
        return {}

    def recipe(self) -> Config:
        """Return a recipe for the model, its vocabularies and its search, without training data."""
        model = settings_of(self.model)
        decoding = self.search_settings()
        # An imported vocabulary may be shared by two SentencePiece models, one for each language.
        is_tied = model["tie_embeddings"] in ("all", "input")
        tokenizer = {
            "vocab_size": self.tokenizers.target.vocab_size,
            "shared": self.tokenizers.shared or is_tied,
        }
        return Config.from_dict(
            {
                "model": model,
                "tokenizer": tokenizer,
                "data": {"max_length": self.max_length},
                "training": {"guided_alignment": self.model.guided_alignment},
                "decoding": decoding,
            }
        )

    def save(self, folder: str | Path) -> Path:
        """Write a run directory without a history, which every command can read; return its path.

        Raises:
            FileExistsError: The folder is not empty, or is a link.
            ValueError: The model has layers or settings that a recipe cannot describe, or the
                folder is an address.
        """
        path = empty_folder(folder)
        recipe = self.recipe()
        model = new_model(recipe.model, self.tokenizers)  # without the fitted model's optimizer
        model.set_weights(self.model.get_weights())
        with new_folder(path, last=RUN_CONFIG) as temporary:
            run = Run.create(temporary, recipe, self.tokenizers)
            run.save_weights(model)
            if self.shortlist is not None:
                run.save_shortlist(self.shortlist.table)
            run.finish({"saved": type(self).__name__})
            if self.calibration is not None:
                run.keep_calibration(self.calibration)
        return path

    def export(self, folder: str | Path, format: str = "saved_model", **options: Any) -> Path:
        """Export the model with its tokenizers and search; return the folder of the new version.

        The arguments and errors are those of `tfformer.export_model`.
        """
        from tfformer.export.pipeline import export_model

        with TemporaryDirectory() as temporary:
            run = self.save(Path(temporary) / "run")
            return export_model(run, folder, format, **options)
