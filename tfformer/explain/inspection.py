"""A run as text: progress, recipe, vocabulary, layers and files."""

import textwrap
from collections.abc import Iterator
from typing import NamedTuple

import keras
import numpy as np

from tfformer.config import Config
from tfformer.model.embedding import TokenEmbedding
from tfformer.run_directory import Model, Run, Tokenizers, new_model
from tfformer.training.early_stopping import SELECTION_METRICS, best_epoch, is_validated


class Component(NamedTuple):
    """The weights of one component of the model."""

    name: str
    shapes: tuple[tuple[int, ...], ...]  # one shape per weight
    copies: int = 1  # number of layers with this component

    @property
    def parameters(self) -> int:
        """The number of parameters in one copy."""
        return sum(int(np.prod(shape)) for shape in self.shapes)


def describe(run: Run) -> str:
    """Return the output of `tfformer inspect` for a finished or unfinished run."""
    tokenizers = run.tokenizers
    model = new_model(run.config.model, tokenizers)
    sections = (
        _progress(run),
        _recipe(run),
        _vocabulary(run.config, tokenizers),
        _layers(model),
        _files(run),
    )
    return "\n\n".join(sections)


def model_components(model: Model) -> list[Component]:
    """Return the weights of a built model per component; identical layers are listed once."""
    components = []
    for layer in model.layers:
        # Tied embeddings have several names.
        names = [name for name, value in vars(model).items() if value is layer]
        if isinstance(layer, TokenEmbedding):
            roles = [name.removesuffix("embedding").rstrip("_") or "input" for name in names]
            components.append(_component(f"{', '.join(roles)} embedding", layer.weights))
        else:
            components += _stack_components(names[0], layer)
    if model.output_bias is not None:
        components.append(_component("output bias", [model.output_bias]))
    return components


def _stack_components(stack_name: str, stack: keras.layers.Layer) -> Iterator[Component]:
    """Yield the components of a stack: the weights of each sub-layer, grouped."""
    for sublayer in stack.layers[0].sublayers():
        groups: dict[str, list[keras.Variable]] = {}
        for weight in sublayer.weights:
            layer_name = weight.path.split("/")[-2]
            groups.setdefault(layer_name, []).append(weight)
        for layer_name, weights in groups.items():
            yield _component(
                f"{stack_name} {sublayer.name} {layer_name}", weights, len(stack.layers)
            )
    if stack.normalization:
        yield _component(f"{stack_name} normalization", stack.normalization.weights)


def _component(name: str, weights: list[keras.Variable], copies: int = 1) -> Component:
    return Component(name, tuple(tuple(weight.shape) for weight in weights), copies)


def _progress(run: Run) -> str:
    history = run.metrics_so_far()
    is_finished = run.result.is_file()
    if not history and is_finished:
        return f"{run.folder}: imported or saved, without a history of its training"
    if not history:
        return f"{run.folder}: not finished, before the end of its first epoch"
    state = "finished" if is_finished else "not finished"
    last = history[-1]
    best = best_epoch(history)
    steps = f"{last['epoch']} epochs, {last['step']:,} steps, {last['minutes']:.1f} minutes"
    text = f"{run.folder}: {state}; {steps}"
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

    text = yaml.safe_dump(
        run.config.to_dict(),
        sort_keys=False,
        default_flow_style=None,
        width=110,
        allow_unicode=True,  # show symbols such as ⟦1⟧ unescaped
    )
    return f"Recipe\n{textwrap.indent(text.rstrip(), '  ')}"


def _vocabulary(config: Config, tokenizers: Tokenizers) -> str:
    if not config.model.has_encoder:
        return f"Vocabulary\n  {tokenizers.target.vocab_size:,} pieces"
    source = f"Vocabulary\n  {tokenizers.source.vocab_size:,} pieces"
    if tokenizers.shared:
        return f"{source}, shared by source and target"
    return f"{source} of the source, {tokenizers.target.vocab_size:,} of the target"


def _layers(model: Model) -> str:
    components = model_components(model)
    total = sum(component.copies * component.parameters for component in components)
    width = max(len(component.name) for component in components)
    numbers = f"{'parameters':>12}{'layers':>8}{'together':>14}"
    lines = [f"{'Layers':<{width}}    {'shape':<22}{numbers}"]
    for component in components:
        shape = " + ".join(" x ".join(map(str, shape)) for shape in component.shapes)
        together = component.copies * component.parameters
        numbers = f"{component.parameters:>12,}{component.copies:>8}{together:>14,}"
        lines.append(f"  {component.name:<{width}}  {shape:<22}{numbers}")
    lines.append(f"  {'all':<{width}}  {'':<22}{'':>12}{'':>8}{total:>14,}")
    lines.append(f"  {_size(4 * total)} in float32, {_size(2 * total)} in bfloat16")
    return "\n".join(lines)


def _files(run: Run) -> str:
    run.folder.pull()  # `Run.open` does not pull the state to resume from
    files = sorted(path for path in run.path.iterdir() if path.is_file())
    lines = [f"  {path.name:<22}{_size(path.stat().st_size):>12}" for path in files]
    return "\n".join(["Files", *lines])


def _size(count: int) -> str:
    """A number of bytes, in kB, MB or GB of 1000."""
    for power, unit in ((3, "GB"), (2, "MB")):
        if count >= 1000**power:
            return f"{count / 1000**power:.1f} {unit}"
    return f"{count / 1000:.1f} kB"
