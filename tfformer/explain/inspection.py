"""What a run is made of, as text: progress, recipe, vocabulary, layers, files. Knows no picture."""

from collections.abc import Iterator
from typing import NamedTuple

import keras
import numpy as np

from tfformer.config import Config
from tfformer.model.layers import TokenEmbedding
from tfformer.run_directory import Model, Run, Tokenizers, new_model
from tfformer.training.validation import SELECTION_METRICS, best_epoch, is_validated


class Part(NamedTuple):
    """The weights of one place in the model; `copies` layers have such a place."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    copies: int = 1

    @property
    def parameters(self) -> int:
        """Of one copy."""
        return sum(int(np.prod(shape)) for shape in self.shapes)


def describe(run: Run) -> str:
    """Everything that `tfformer inspect` prints; the run may be unfinished."""
    tokenizers = run.tokenizers
    model = new_model(run.config.model, tokenizers)
    parts = (
        _progress(run),
        _recipe(run),
        _vocabulary(run.config, tokenizers),
        _layers(model),
        _files(run),
    )
    return "\n\n".join(parts)


def model_parts(model: Model) -> list[Part]:
    """Every weight of the model: embeddings, each stack's layers (all equal, so written once), normalisations."""
    found = []
    for layer in model.layers:
        if isinstance(layer, TokenEmbedding):
            roles = [
                place.removesuffix("embedding").rstrip("_") or "input"
                for place in _places(model, layer)
            ]
            found.append(_part(f"{', '.join(roles)} embedding", layer.weights))
        else:
            found += _stack_parts(*_places(model, layer), layer)
    if model.output_bias is not None:
        found.append(_part("output bias", [model.output_bias]))
    return found


def _places(model: Model, layer: keras.layers.Layer) -> list[str]:
    """What the model calls this layer: one with tied embeddings has several names for it."""
    return [name for name, value in vars(model).items() if value is layer]


def _stack_parts(side: str, stack: keras.layers.Layer) -> Iterator[Part]:
    """Of each sub-layer of a stack, the weights that belong together."""
    for sublayer in stack.layers[0].sublayers():
        places = {}
        for weight in sublayer.weights:
            places.setdefault(weight.path.split("/")[-2], []).append(weight)
        for place, weights in places.items():
            yield _part(f"{side} {sublayer.name} {place}", weights, len(stack.layers))
    if stack.normalization:
        yield _part(f"{side} normalization", stack.normalization.weights)


def _part(name: str, weights: list, copies: int = 1) -> Part:
    return Part(name, tuple(tuple(weight.shape) for weight in weights), copies)


def _progress(run: Run) -> str:
    history = run.history()
    state = "finished" if run.result.is_file() else "not finished"
    if not history:
        return f"{run.path}: {state}, before the end of its first epoch"
    last, best = history[-1], best_epoch(history)
    text = f"{run.path}: {state}; {last['epoch']} epochs, {last['step']:,} steps, {last['minutes']:.1f} minutes"
    if not is_validated(best):
        return f"{text}; not validated yet"
    figures = ", ".join(
        f"{metric.label} {best[name]:.2f}"
        for name, metric in SELECTION_METRICS.items()
        if name in best
    )
    return f"{text}; best validation {figures}, after epoch {best['epoch']}"


def _recipe(run: Run) -> str:
    import yaml

    text = yaml.safe_dump(run.config.to_dict(), sort_keys=False, default_flow_style=None, width=110)
    return f"Recipe\n{_indented(text)}"


def _vocabulary(config: Config, tokenizers: Tokenizers) -> str:
    if config.model.architecture == "decoder":
        return f"Vocabulary\n  {tokenizers.target.vocab_size:,} pieces"
    if tokenizers.shared:
        return f"Vocabulary\n  {tokenizers.source.vocab_size:,} pieces, shared by source and target"
    return (
        f"Vocabulary\n  {tokenizers.source.vocab_size:,} pieces of the source, {tokenizers.target.vocab_size:,} of the "
        "target"
    )


def _layers(model: Model) -> str:
    parts = model_parts(model)
    total = sum(part.copies * part.parameters for part in parts)
    width = max(len(part.name) for part in parts)
    lines = [f"  {'Layers':<{width}}  {'shape':<22}{'parameters':>12}{'layers':>8}{'together':>14}"]
    for part in parts:
        shape = " + ".join(" x ".join(map(str, shape)) for shape in part.shapes)
        together = f"{part.copies * part.parameters:,}"
        lines.append(
            f"  {part.name:<{width}}  {shape:<22}{part.parameters:>12,}{part.copies:>8}{together:>14}"
        )
    lines.append(f"  {'all':<{width}}  {'':<22}{'':>12}{'':>8}{total:>14,}")
    lines.append(f"  {_size(4 * total)} in float32, {_size(2 * total)} in bfloat16")
    return "\n".join([lines[0].strip(), *lines[1:]])


def _files(run: Run) -> str:
    files = sorted(path for path in run.path.iterdir() if path.is_file())
    return "\n".join(
        ["Files", *(f"  {path.name:<22}{_size(path.stat().st_size):>12}" for path in files)]
    )


def _size(count: int) -> str:
    """A number of bytes, in kB, MB or GB of 1000."""
    for power, unit in ((3, "GB"), (2, "MB")):
        if count >= 1000**power:
            return f"{count / 1000**power:.1f} {unit}"
    return f"{count / 1000:.1f} kB"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
