"""Measure the inputs of a model's matrix products, for engines that round them to int8."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfformer.checkpoints.weight_names import WeightName, variables
from tfformer.export.litert import validation_text
from tfformer.export.parity import best_translations, random_samples
from tfformer.inference.graphs import token_log_probs
from tfformer.inference.translator import Translator
from tfformer.model.fast_layers import Dense
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run
from tfformer.runtime.tracing import traced
from tfformer.special_ids import END_ID


def largest_inputs(
    samples: Sequence[str] | None, run: Run, model: Transformer
) -> dict[WeightName, float]:
    """Return the largest absolute input of each matrix when a model translates samples greedily.

    The samples default to the run's validation text, or to random pieces with a warning if the
    recipe names none. Each sentence is computed alone, so that no padding is measured.
    """
    translator = Translator.for_recipe(model, run.tokenizers, run.config)
    if not samples and run.config.data.valid:
        samples, _ = validation_text(run)
    if not samples:
        samples = random_samples(translator)
        warnings.warn(
            f"the recipe of {run.path} names no validation text, so random pieces determine how "
            "int8 rounds; pass typical sentences with --samples",
            stacklevel=2,
        )
    texts = [text for text, _ in best_translations(translator, samples, beam_size=1)]
    rows = zip(translator.encode(samples).ids, translator.encode_targets(texts).ids, strict=True)
    names = {id(variable): names for variable, names in variables(model)}
    measured: list[tuple[WeightName, ...]] = []

    def measure(source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        sizes: list[tf.Tensor] = []

        def watch(call: Callable[..., tf.Tensor], kernel: Any) -> Callable[..., tf.Tensor]:
            def watched(x: tf.Tensor, *arguments: Any, **options: Any) -> tf.Tensor:
                measured.append(names[id(kernel)])
                sizes.append(tf.reduce_max(tf.abs(x)))
                return call(x, *arguments, **options)

            return watched

        layers = [layer for layer in model._flatten_layers() if isinstance(layer, Dense)]
        for layer in layers:
            layer.call = watch(layer.call, layer.kernel)  # type: ignore[method-assign]
        token_log_probs(
            model, source, target, watch(model.logits, model.output_embedding.embeddings)
        )
        for layer in layers:
            del layer.call
        return tf.stack(sizes)

    graph = traced(measure, input_signature=[tf.TensorSpec((None, None), tf.int32)] * 2)
    sizes = [graph(*([[*row, END_ID]] for row in pair)).numpy() for pair in rows]
    largest = np.max(sizes, axis=0).tolist()
    return {name: size for group, size in zip(measured, largest, strict=True) for name in group}
