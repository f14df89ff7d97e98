"""A translator around a `keras_hub.models.Seq2SeqLM`."""

import inspect
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import numpy as np

from tfformer.checkpoints.imported_run import NEVER
from tfformer.checkpoints.provenance import NOT_STATED, write_record
from tfformer.checkpoints.vocabulary import RowOrder
from tfformer.config import Config, Dialect
from tfformer.export import FORMATS, check_options
from tfformer.export.pipeline import write_version
from tfformer.inference.translator import Translator
from tfformer.keras_hub.model import KerasHubModel
from tfformer.run_directory import Run
from tfformer.runtime.extras import install_line
from tfformer.runtime.progress_lines import Steps
from tfformer.special_ids import START_ID

NO_LIMIT = 10**6  # extra target tokens, so many that only `max_length` limits a translation
INTERFACE = {  # the methods that a search calls, with their arguments
    "call_encoder": {"token_ids", "padding_mask"},
    "call_decoder_with_cache": {
        "encoder_hidden_states",
        "encoder_padding_mask",
        "decoder_token_ids",
        "self_attention_cache",
        "self_attention_cache_update_index",
        "cross_attention_cache",
        "cross_attention_cache_update_index",
    },
    "_initialize_cache": {"encoder_token_ids", "decoder_token_ids"},
}


class KerasHubTranslator(Translator):
    """A `Translator` whose model consists of keras-hub layers."""

    model: KerasHubModel

    def recipe(self) -> Config:
        """Return a recipe for vocabulary and search; a recipe cannot describe the model."""
        tokenizer = {"vocab_size": self.tokenizers.target.vocab_size}  # of both languages
        data: dict[str, Any] = {"max_length": self.max_length}
        if self.target_language:
            data["languages"] = [self.language, self.target_language]
        decoding = self.search_settings()
        return Config.from_dict({"tokenizer": tokenizer, "data": data, "decoding": decoding})

    def export(self, folder: str | Path, format: str = "saved_model", **options: Any) -> Path:
        """Export like `Translator.export`, to the format "saved_model" or "litert".

        With a byte-pair vocabulary, a SavedModel requires `with_text=False`, because the tokenizer
        works only in Python.
        """
        check_options(format, options)
        if format not in ("saved_model", "litert"):
            raise ValueError(
                f"format={format!r} cannot contain keras-hub layers; choose saved_model or litert"
            )
        chosen = FORMATS[format](**options)
        _check_positions(self.model.lm, chosen.max_length or self.max_length)
        task = self.model.task.__name__
        with TemporaryDirectory() as temporary:
            run = Run.create(Path(temporary) / "run", self.recipe(), self.tokenizers)
            run.save_weights(self.model)
            write_record(run, {"family": "keras_hub", "origin": task, "licence": NOT_STATED})
            run.finish({"saved": task})

            def load(run: Run) -> Translator:
                return self.with_search(run.config.decoding, run.config.data.max_length)

            return write_version(run.path, folder, chosen, load, Steps(None))

    def save(self, folder: str | Path) -> NoReturn:
        """Raise ValueError: a run directory contains only models that a recipe describes."""
        raise ValueError(
            "a run directory cannot contain a keras-hub model; export this translator, or save "
            "the model with keras-hub's save_to_preset"
        )


def from_keras_hub(
    seq2seq_lm: Any,
    *,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    max_length: int = 128,
    instruction: str = "",
    language: str = "en",
    target_language: str | None = None,
) -> Translator:
    """Turn an encoder-decoder from keras-hub into a translator.

    Args:
        seq2seq_lm: A `keras_hub.models.Seq2SeqLM` with a preprocessor, of the T5 or BART family or
            of another family with the same interface. Its weights are copied.
        beam_size: As in `Translator`; with 1, translations equal those of keras-hub's greedy
            sampler.
        length_penalty: As in `Translator`.
        max_length: Maximum number of tokens of a source or a translation, including the end token.
        instruction: Text to put before each source, such as "translate English to German: " for T5.
        language: As in `Translator`.
        target_language: As in `Translator`.

    Returns:
        The translator.

    Raises:
        ModuleNotFoundError: keras-hub is not installed.
        ValueError: The model is not a `Seq2SeqLM`, has a different interface, no preprocessor or an
            unknown tokenizer, or has fewer positions than `max_length`.

    Example:
        >>> import keras_hub, tfformer  # doctest: +SKIP
        >>> lm = keras_hub.models.Seq2SeqLM.from_preset("t5_small_multi")  # doctest: +SKIP
        >>> translator = tfformer.from_keras_hub(  # doctest: +SKIP
        ...     lm, instruction="translate English to German: ", beam_size=4
        ... )
        >>> version = translator.export("models/t5")  # doctest: +SKIP
    """
    try:
        import keras_hub

        from tfformer.keras_hub.vocabulary import new_tokenizer, prompt_of, row_order
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(install_line(error), name=error.name) from None
    if not isinstance(seq2seq_lm, keras_hub.models.Seq2SeqLM):
        raise ValueError(
            f"{seq2seq_lm!r} is not a keras_hub.models.Seq2SeqLM; load one with "
            "Seq2SeqLM.from_preset"
        )
    name = type(seq2seq_lm).__name__
    _check_interface(seq2seq_lm, name)
    _check_positions(seq2seq_lm, max_length)
    tokenizer, prompt = seq2seq_lm.preprocessor.tokenizer, prompt_of(seq2seq_lm.preprocessor)
    order = row_order(tokenizer, prompt, seq2seq_lm.backbone.vocabulary_size)
    target = new_tokenizer(tokenizer, order, prompt)
    source = new_tokenizer(tokenizer, order, prompt, instruction) if instruction else target
    return KerasHubTranslator(
        _model(seq2seq_lm, order),
        source,
        target,
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_length=max_length,
        language=language,
        target_language=target_language,
    )


def _check_positions(seq2seq_lm: Any, max_length: int) -> None:
    positions = getattr(seq2seq_lm.backbone, "max_sequence_length", max_length)
    if max_length > positions:
        name = type(seq2seq_lm).__name__
        raise ValueError(
            f"max_length={max_length} exceeds the {positions} positions of {name}; lower it"
        )


def _check_interface(seq2seq_lm: Any, name: str) -> None:
    for method, arguments in INTERFACE.items():
        function = getattr(seq2seq_lm, method, None)
        parameters = set(inspect.signature(function).parameters) if function else set()
        if parameters != arguments:
            raise ValueError(
                f"{name}.{method} is missing or takes different arguments from those of T5 and "
                "BART, so a search cannot call it"
            )
    if seq2seq_lm.preprocessor is None:
        raise ValueError(
            f"{name} has no preprocessor, and therefore no tokenizer; create {name} with a "
            "preprocessor"
        )


def _model(seq2seq_lm: Any, order: RowOrder) -> KerasHubModel:
    """Return the model with its vocabulary rows in the order of this package's ids."""
    backbone = seq2seq_lm.backbone
    config = backbone.get_config() | {"vocabulary_size": len(order.rows)}
    dialect = Dialect(output_bias=True, extra_length=NO_LIMIT)
    model = KerasHubModel(type(seq2seq_lm), config, dialect)
    for ours, theirs in zip(model.lm.backbone.weights, backbone.weights, strict=True):
        values = np.asarray(theirs, np.float32)
        if tuple(ours.shape) != values.shape:  # tables of the vocabulary, with rows for new ids
            is_kernel = values.shape[0] != backbone.vocabulary_size
            values = order.bring_in(values.T).T if is_kernel else order.bring_in(values)
        ours.assign(values)
    bias = np.zeros(len(order.rows), np.float32)
    added = [number for number, row in enumerate(order.rows) if row is None]
    bias[[START_ID, *added]] = NEVER
    assert model.output_bias is not None
    model.output_bias.assign(bias)
    return model
