"""Read models in Marian's own format into a `Checkpoint`. The names are also used for export.

Based on marian-dev (c9f287d), models/transformer.h, and on files that Marian 1.12.42 wrote. In
Marian, y = x W, so kernels are stored as (inputs, outputs), as in this package. A translation
begins with a zero embedding, and there is no padding token.
"""

import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tfformer.checkpoints.foreign_checkpoint import (
    NO_CHOICES,
    Checkpoint,
    Choices,
    Vocabulary,
    check_tensors,
)
from tfformer.checkpoints.foreign_files import told_by_keys
from tfformer.checkpoints.marian import files as marian_files
from tfformer.checkpoints.marian.files import MarianOptions
from tfformer.checkpoints.marian.shortlist import read_table, table_in
from tfformer.checkpoints.vocabulary import check_segmentation, read_vocabulary, special_order
from tfformer.checkpoints.weight_names import (
    OUTPUT,
    OUTPUT_BIAS,
    SOURCE,
    TARGET,
    Slot,
    WeightName,
    shapes,
)
from tfformer.config import DIALECTS, Config, DecodingConfig, ModelConfig

EPSILON = 1e-6  # layers/generic.h
# Defaults of marian-decoder, if decoder.yml does not state them.
BEAM_SIZE, NORMALIZE = 12, 0.0
MARIAN_SEARCH = DIALECTS["marian"].search()
MAX_LENGTH = 512  # Marian has no limit; this is MarianTokenizer's
BIAS = "decoder_ff_logit_out_b"
SIZES = {  # the recipe's setting -> the option of the model
    "num_layers": "enc-depth",
    "num_decoder_layers": "dec-depth",
    "d_model": "dim-emb",
    "num_heads": "transformer-heads",
    "d_ff": "transformer-dim-ffn",
}
SEARCH = {  # the recipe's setting -> the option of decoder.yml
    "beam_size": "beam-size",
    "length_penalty": "normalize",
    "allow_unknown": "allow-unk",
    "max_length_factor": "max-length-factor",
}
NEEDED = (  # without these options Marian loads a model but translates wrongly
    *("type", "dim-vocabs", "dim-emb", "enc-depth", "dec-depth"),
    *("transformer-heads", "transformer-dim-ffn", "tied-embeddings-all"),
)
UNSET: tuple[object, ...] = (False, None, 0, "", [])  # values of an option that is off
FIREFOX = {"beam-size": 1, "normalize": 1.0, "max-length-factor": 2.0}  # it has no decoder.yml
NO_MODEL = re.compile(r"optimizer|^lex")  # in names of other files in the folder
MUST_BE = {  # option -> the values that this package's layers have; the first is the default
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention", "rnn"),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-attention-mask": ("default",),
    "input-types": UNSET,
    "lemma-dim-emb": UNSET,
    "right-left": UNSET,
    "ulr": UNSET,
}
WITHOUT_EFFECT = (  # on decoders with self-attention or recurrent units
    *("transformer-rnn-projection", "transformer-dim-aan", "transformer-aan-depth"),
    *("transformer-aan-activation", "transformer-aan-nogate", "transformer-depth-scaling"),
    *("transformer-guided-alignment-layer", "transformer-dropout"),
    *("transformer-dropout-attention", "transformer-dropout-ffn"),
)
READ = (
    *("transformer-heads", "transformer-dim-ffn", "transformer-decoder-dim-ffn"),
    *("transformer-ffn-activation", "transformer-preprocess", "transformer-postprocess"),
    *("transformer-postprocess-top", "transformer-postprocess-emb"),
)
ACTIVATIONS = ("swish", "relu", "gelu")
NORMS = {("", "an", ""): "post", ("n", "a", "n"): "pre"}  # pre-, postprocess, at the top
EXACT_GELU_SINCE = (1, 12)
NORMALISED_KEYS_SINCE = (1, 10, 28)  # earlier pre-norm models normalised only the queries
BLOCKS = {
    "self_attention": "self",
    "recurrence": "rnn",
    "cross_attention": "context",
    "feed_forward": "ffn",
}
LETTERS = {
    **{"query": "q", "key": "k", "value": "v", "output": "o"},
    **{"candidate": "", "forget": "f"},
    **{"inner": "1", "outer": "2"},
}
TABLES = {  # tie -> table -> name
    "all": {SOURCE: "Wemb"},
    "input": {SOURCE: "Wemb", OUTPUT: "decoder_ff_logit_out_W"},
    "output": {SOURCE: "encoder_Wemb", TARGET: "decoder_Wemb"},
    "none": {
        SOURCE: "encoder_Wemb",
        TARGET: "decoder_Wemb",
        OUTPUT: "decoder_ff_logit_out_W",
    },
}
TRANSPOSED = "decoder_ff_logit_out_W"  # (d, V); newer models have it as ..._Wt, (V, d)


def recognises(folder: Path) -> bool:
    """Whether a folder contains a model in Marian's own format."""
    return any(folder.glob("*.npz")) or any(folder.glob("*.bin"))


def slot_name(slot: Slot, norm: str) -> str:
    """Return Marian's name for a layer's tensor; normalisation names depend on `norm`.

    Example:
        >>> slot_name(Slot("decoder", 0, "cross_attention", "key", "kernel"), "post")
        'decoder_l1_context_Wk'
        >>> slot_name(Slot("encoder", 1, "feed_forward", "norm", "scale"), "pre")
        'encoder_l2_ffn_ffn_ln_scale_pre'
        >>> slot_name(Slot("decoder", 0, "recurrence", "forget", "bias"), "post")
        'decoder_l1_rnn_bf'
    """
    if slot.layer is None:
        return f"{slot.stack}_top_ln_{slot.kind}"
    begin = f"{slot.stack}_l{slot.layer + 1}_{BLOCKS[slot.block]}"
    if slot.projection != "norm":
        letter = "b" if slot.kind == "bias" else "W"
        return f"{begin}_{letter}{LETTERS[slot.projection]}"
    if slot.block in ("self_attention", "cross_attention"):
        begin += "_Wo"
    elif slot.block == "feed_forward" or norm == "post":
        begin += "_ffn"
    return f"{begin}_ln_{slot.kind}{'' if norm == 'post' else '_pre'}"


def read(folder: Path, choices: Choices = NO_CHOICES) -> Checkpoint:
    """Return the model in a folder, with every tensor checked.

    The folder contains one `.npz` or `.bin`, the vocabularies as `.spm` or `.yml`, and for `.yml`
    also source.spm and target.spm; a decoder.yml may name the files. `choices.positions` is "auto"
    for Marian's position table and search, "marian" to compute pre-norm layers as marian-decoder
    does too, or "hf" for the table and the search of Transformers. A missing or damaged file, or a
    layer that this package lacks, raises ValueError.
    """
    decoder = _decoder_options(folder)
    path = _model_file(folder, decoder)
    options, tensors = marian_files.read(path)
    _check_options(path, options)
    tie = _tie(options)
    model = _model_config(path, options, tie, choices.positions)
    names = _names(model, tensors)
    weights = {
        weight: _stored(tensors[name], weight, name)
        for weight, name in names.items()
        if name in tensors
    }
    unknown = sorted(tensors.keys() - names.values())
    if unknown:
        raise ValueError(
            f"{path}: the tensor {unknown[0]} does not fit a model with these options "
            f"({len(unknown)} such tensors); use a model with only Marian's standard layers"
        )
    source, target, shared = _vocabularies(folder, decoder, path, options)
    if options.get("output-omit-bias"):
        if np.any(weights.get(OUTPUT_BIAS, 0)):
            warnings.warn(
                f"{path}: option output-omit-bias is set, so {BIAS} is ignored, as in Marian",
                stacklevel=2,
            )
        weights[OUTPUT_BIAS] = np.zeros(len(target.pieces), np.float32)
    model, decoding = _search(model, folder, decoder, choices.positions)
    stated = decoder.get("shortlist")
    table = table_in(folder, stated)
    checkpoint = Checkpoint(
        model=model,
        tensors=weights,
        source=source,
        target=target,
        shares_vocabulary=shared,
        decoding=decoding,
        max_length=MAX_LENGTH,
        languages=None,
        family="marian",
        names=names,
        details={"options": options, "decoder": decoder},
        shortlist=(read_table(table, source.pieces, target.pieces, stated) if table else None),
    )
    check_tensors(checkpoint)
    return checkpoint


def _names(model: ModelConfig, tensors: Iterable[str]) -> dict[WeightName, str]:
    names: dict[WeightName, str] = {OUTPUT_BIAS: BIAS}
    names.update(TABLES[model.tie_embeddings].items())
    if names.get(OUTPUT) == TRANSPOSED and f"{TRANSPOSED}t" in tensors:
        names[OUTPUT] = f"{TRANSPOSED}t"
    return names | {slot: slot_name(slot, model.norm) for slot in shapes(model)}


def _stored(tensor: np.ndarray, weight: WeightName, name: str) -> np.ndarray:
    """Return a tensor in this package's shape."""
    if name == TRANSPOSED:
        return tensor.T
    is_vector = weight.kind in ("bias", "scale")
    return tensor[0] if is_vector and len(tensor) == 1 else tensor


def _check_options(path: Path, options: MarianOptions) -> None:
    """Raise ValueError for options that this package's layers do not support."""
    for name in NEEDED:
        if name not in options:
            raise ValueError(f"{path} lacks the option {name}, which is needed to build the model")
    cell, projects = options.get("dec-cell"), options.get("transformer-rnn-projection")
    if _is_recurrent(options) and (cell != "ssru" or projects):
        raise ValueError(
            f"{path}: transformer-decoder-autoreg is rnn with dec-cell {cell} and "
            f"transformer-rnn-projection {projects}, but this package supports only dec-cell ssru "
            "without a projection"
        )
    layers = {name for name in options if str(name).startswith("transformer-")}
    unset: dict[str, tuple[object, ...]] = dict.fromkeys(layers - {*WITHOUT_EFFECT, *READ}, UNSET)
    for name, known in sorted((unset | MUST_BE).items()):
        if options.get(name, known[0]) not in known:
            raise ValueError(
                f"{path}: option {name} is {options[name]!r}, which this package does not support; "
                f"it supports {known[0]!r}"
            )
    if _letters(options, "transformer-postprocess-emb", "d"):
        raise ValueError(
            f"{path}: option transformer-postprocess-emb is "
            f"{options['transformer-postprocess-emb']!r}, which this package does not have"
        )


def _is_recurrent(options: MarianOptions) -> bool:
    return bool(options.get("transformer-decoder-autoreg") == "rnn")


def _letters(options: MarianOptions, name: str, default: str) -> str:
    """Return a chain of operations without dropout, which applies only in training."""
    return str(options.get(name, default) or "").replace("d", "")


def _norm(path: Path, options: MarianOptions, positions: str) -> str:
    """Return the recipe's norm: "marian" is "pre" as marian-decoder computes it."""
    chain = (
        _letters(options, "transformer-preprocess", ""),
        _letters(options, "transformer-postprocess", "dan"),
        _letters(options, "transformer-postprocess-top", ""),
    )
    if chain not in NORMS:
        raise ValueError(
            f"{path}: options transformer-preprocess, -postprocess and -postprocess-top are "
            f"{chain}, but only {' and '.join(map(str, NORMS))} are supported"
        )
    if NORMS[chain] == "post":
        return "post"
    if _version(options) < NORMALISED_KEYS_SINCE:
        raise ValueError(
            f"{path}: option transformer-preprocess is 'n' in a model from Marian before 1.10.28, "
            "whose self-attention does not normalise keys and values; this package does not "
            "support that"
        )
    if positions == "marian":
        return "marian"
    if _is_recurrent(options):  # marian-decoder differs only in self-attention
        return "pre"
    warnings.warn(
        f"{path}: marian-decoder computes pre-norm models differently from, and worse than, Marian "
        "in training; the run computes as in training; to reproduce marian-decoder, use "
        "--positions marian",
        stacklevel=2,
    )
    return "pre"


def _version(options: MarianOptions) -> tuple[int, ...]:
    """Return the numbers of Marian's version; (0,) if it is not stated."""
    numbers = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", str(options.get("version", "")))
    return (0,) if numbers is None else tuple(int(number or 0) for number in numbers.groups())


def _tie(options: MarianOptions) -> str:
    every = options.get("tied-embeddings-all")
    source = options.get("tied-embeddings-src")
    target = options.get("tied-embeddings")
    if every or (source and target):
        return "all"
    if source:
        return "input"
    return "output" if target else "none"


def _activation(path: Path, options: MarianOptions) -> str:
    name = options.get("transformer-ffn-activation", "swish")
    if name not in ACTIVATIONS:
        raise ValueError(
            f"{path}: option transformer-ffn-activation is {name!r}, which this package does not "
            f"have; it has {', '.join(ACTIVATIONS)}"
        )
    if name == "gelu" and _version(options) < EXACT_GELU_SINCE:
        raise ValueError(
            f"{path}: option transformer-ffn-activation is 'gelu' in a model from Marian before "
            "1.12, an approximation that this package does not support"
        )
    return name


def _model_config(path: Path, options: MarianOptions, tie: str, positions: str) -> ModelConfig:
    dialect = {
        "output_bias": True,
        "epsilon": 1e-5 if positions == "hf" else EPSILON,
        "position_layout": "halves",
        "position_timescale": "paper" if positions == "hf" else "t2t",
        "zero_start": True,
    }
    decoder_d_ff = options.get("transformer-decoder-dim-ffn")
    if decoder_d_ff and decoder_d_ff != options["transformer-dim-ffn"]:
        dialect["decoder_d_ff"] = decoder_d_ff
    values = {
        **{name: options[key] for name, key in SIZES.items()},
        "decoder": "ssru" if _is_recurrent(options) else "attention",
        "activation": _activation(path, options),
        "norm": _norm(path, options, positions),
        "tie_embeddings": tie,
        "dialect": dialect,
    }
    sections = {"model": values, "tokenizer": {"shared": tie in ("all", "input")}}
    with told_by_keys(path, SIZES | {"decoder_d_ff": "transformer-decoder-dim-ffn"}):
        return Config.from_dict(sections).model


def _decoder_options(folder: Path) -> MarianOptions:
    """Return the options in the decoder configuration, if there is one.

    Marian writes one for each model that it saves, such as the best by BLEU.
    """
    files = [*folder.glob("decoder.yml")] or sorted(folder.glob("*.decoder.yml"))
    if len(files) > 1:
        raise ValueError(
            f"{folder} has {len(files)} decoder configurations "
            f"({', '.join(file.name for file in files)}); copy one to decoder.yml"
        )
    if not files and any(folder.glob("*.intgemm*.bin")):
        return dict(FIREFOX)
    return marian_files.read_options(files[0]) if files else {}


def _model_file(folder: Path, decoder: MarianOptions) -> Path:
    stated = decoder.get("models")
    names = stated if isinstance(stated, list) else []
    if len(names) > 1:
        raise ValueError(
            f"the decoder.yml in {folder} names an ensemble of {len(names)} models; keep one"
        )
    for name in names:
        if (folder / Path(str(name)).name).is_file():
            return folder / Path(str(name)).name
    files = sorted([*folder.glob("*.npz"), *folder.glob("*.bin")])
    models = [file for file in files if not NO_MODEL.search(file.name)]
    if len(models) != 1:
        raise ValueError(
            f"{folder} contains {len(models)} models ({', '.join(file.name for file in models)}), "
            "and no decoder.yml selects one; keep only one"
        )
    return models[0]


def _search(
    model: ModelConfig, folder: Path, decoder: MarianOptions, positions: str
) -> tuple[ModelConfig, DecodingConfig]:
    """Return a model with Marian's search, or Transformers', in its dialect, and the decoding."""
    if decoder.get("word-penalty"):
        warnings.warn(
            f"decoder.yml's word-penalty {decoder['word-penalty']} is not supported and is ignored",
            stacklevel=2,
        )
    values = {
        "beam_size": decoder.get("beam-size", BEAM_SIZE),
        "length_penalty": decoder.get("normalize", NORMALIZE),
    }
    changes: dict[str, Any] = {"length_normalization": "power"}
    if positions != "hf":
        changes = dict(MARIAN_SEARCH)
        for name in ("allow_unknown", "max_length_factor"):
            if SEARCH[name] in decoder:
                changes[name] = decoder[SEARCH[name]]
    with told_by_keys(folder / "decoder.yml", SEARCH):
        dialect = model.dialect.replace(**changes)
        return model.replace(dialect=dialect), Config.from_dict({"decoding": values}).decoding


def _vocabularies(
    folder: Path, decoder: MarianOptions, path: Path, options: MarianOptions
) -> tuple[Vocabulary, Vocabulary, bool]:
    """Return the vocabularies of source and target, and whether they have the same tokens."""
    sizes = options["dim-vocabs"]
    if not isinstance(sizes, list) or len(sizes) != 2:
        raise ValueError(f"{path}: option dim-vocabs is {sizes!r}, but there must be two sizes")
    vocabularies, models = [], []
    files = _vocabulary_files(folder, decoder)
    for file, size, side in zip(files, sizes, ("source", "target"), strict=True):
        pieces = read_vocabulary(file)
        if len(pieces) != size:
            raise ValueError(f"{file} has {len(pieces)} tokens, but dim-vocabs in {path} is {size}")
        model = file if file.suffix == ".spm" else folder / f"{side}.spm"
        if not model.is_file():
            raise ValueError(
                f"{model} is missing, and {file.name} alone cannot segment text; models with "
                f"{side}.bpe do not use SentencePiece and cannot be imported"
            )
        content = model.read_bytes()
        check_segmentation(content, model, pieces)
        models.append(model)
        order = special_order(file, pieces, has_pad=False)
        vocabularies.append(Vocabulary(pieces, content, order))
    if unused := sorted({*folder.glob("*.spm")} - {*models}):
        raise ValueError(
            f"decoder.yml names {unused[0]} for neither side; correct decoder.yml, or remove the "
            "file"
        )
    source, target = vocabularies
    shared = source.pieces == target.pieces
    if shared and source.model == target.model:
        target = source
    return source, target, shared


def _vocabulary_files(folder: Path, decoder: MarianOptions) -> list[Path]:
    named = decoder.get("vocabs")
    names = [Path(str(name)).name for name in named] if isinstance(named, list) else []
    for name in names:
        if name.endswith(".fsv"):
            raise ValueError(
                f"{folder}: {name} is a factored vocabulary, which this package does not support"
            )
    paths = [folder / name for name in names]
    if len(paths) == 2 and all(file.is_file() for file in paths):
        return paths
    both = sorted([*folder.glob("*vocab.yml"), *folder.glob("vocab*.spm")])
    if len(both) == 1:
        return [both[0], both[0]]
    separate = [*folder.glob("srcvocab*.spm"), *folder.glob("trgvocab*.spm")]  # Firefox's names
    if len(separate) == 2:
        return separate
    raise ValueError(
        f"{folder} has no decoder.yml that names two vocabularies in the folder; add one, or a "
        "vocab.yml"
    )
