"""Write a run as a model in Marian's own format.

marian-decoder and pymarian load it with decoder.yml; Firefox's engine loads model.bin, the
vocabulary and lex.bin.
"""

import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import yaml

from tfformer.checkpoints.foreign_checkpoint import Vocabulary
from tfformer.checkpoints.foreign_order import Foreign, as_foreign
from tfformer.checkpoints.marian import files as marian_files
from tfformer.checkpoints.marian.files import ALPHA
from tfformer.checkpoints.marian.reader import BIAS, TABLES, TRANSPOSED, slot_name
from tfformer.checkpoints.marian.shortlist import write_tables
from tfformer.checkpoints.vocabulary import read_vocabulary
from tfformer.checkpoints.weight_names import OUTPUT_BIAS, Slot, WeightName
from tfformer.config import Config, ModelConfig
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run
from tfformer.special_ids import START_ID

VERSION = "v1.12.0 of tfformer"
POST, PRE = ("", "dan", ""), ("n", "da", "n")  # pre-, postprocess, at the top
CHAINS = {"post": POST, "pre": PRE, "marian": PRE}
FIREFOX = {"decoder": ("ssru",), "norm": ("post",), "tie_embeddings": ("all", "output")}
INPUTS, OUTPUTS = 64, 8  # sizes of int8 matrices are multiples, see wasm_intgemm_interface.h

Measure = Callable[[Run, Transformer], Mapping[WeightName, float]]


def write(folder: Path, run: Run, model: Transformer, measure: Measure | None = None) -> None:
    """Fill an empty folder with model.npz, model.bin, decoder.yml, vocabularies and the shortlist.

    If `measure` returns the largest absolute input of each matrix, model.bin is int8. It raises
    ValueError for layers that Marian does not have, and in int8 for a model that Firefox's engine
    cannot run. Marian's start vector is zero, as in imported runs and those trained with
    `model.dialect: marian`.
    """
    settings = run.config.model
    _check(run.path, settings, model)
    foreign = as_foreign(run, model, with_pad=False)
    if measure is not None:
        _check_int8(run.path, settings, len(foreign.target.pieces))
    options = _options(foreign, settings)
    tensors = _tensors(foreign, settings)
    if not options["output-omit-bias"]:
        tensors[BIAS] = foreign.tensors[OUTPUT_BIAS][np.newaxis]
    marian_files.write_npz(folder / "model.npz", options, tensors)
    multipliers: dict[str, np.ndarray] = {}
    rounded: list[str] = []
    if measure is not None:
        multipliers = _multipliers(settings, measure(run, model))
        rounded = [name for name, tensor in tensors.items() if len(tensor) > 1]
    marian_files.write_bin(folder / "model.bin", options, tensors | multipliers, rounded)
    _write_decoder(folder, foreign, run.config)


def _check(path: Path, settings: ModelConfig, model: Transformer) -> None:
    if settings.dialect.position_offset:
        raise ValueError(
            f"{path} has model.dialect.position_offset={settings.dialect.position_offset}, but "
            "Marian's positions begin at 0; use --format ctranslate2"
        )
    if not (settings.use_bias and settings.dialect.scale_embedding):
        raise ValueError(
            f"{path} has model.use_bias={settings.use_bias} and "
            f"model.dialect.scale_embedding={settings.dialect.scale_embedding}, but Marian always "
            "uses both"
        )
    if (settings.dialect.num_decoder_heads or settings.num_heads) != settings.num_heads:
        raise ValueError(
            f"{path} has {settings.num_heads} heads in the encoder and "
            f"{settings.dialect.num_decoder_heads} in the decoder, but Marian uses the same number "
            "in both"
        )
    start = model.target_embedding.table()[START_ID]
    if np.any(start):
        raise ValueError(
            f"{path} begins a translation with a learned vector (up to {np.abs(start).max():.3g}), "
            "but Marian begins with zeros; train with model.dialect=marian, or use --format "
            "hugging_face"
        )
    if settings.dialect.position_timescale != "t2t":
        warnings.warn(
            f"{path} has model.dialect.position_timescale=paper, but Marian always uses t2t: this "
            "is right for weights that Marian trained, and wrong for other weights",
            stacklevel=3,
        )
    if rules := settings.dialect.rules.to_dict():
        warnings.warn(
            f"{path} has model.dialect.rules={rules}, which Marian's search does not support; use "
            "--format hugging_face to keep them",
            stacklevel=3,
        )
    if settings.norm == "pre" and settings.decoder == "attention":
        warnings.warn(
            f"{path} has model.norm=pre, which marian-decoder computes differently from, and worse "
            "than, Marian in training (docs/imported_models.md); use --format ctranslate2 to "
            "translate",
            stacklevel=3,
        )


def _check_int8(path: Path, settings: ModelConfig, vocab_size: int) -> None:
    for name, known in FIREFOX.items():
        if (value := getattr(settings, name)) not in known:
            raise ValueError(
                f"{path} has model.{name}={value}, but Firefox's engine runs only "
                f"{' or '.join(known)}; export without --quantize"
            )
    for name, size, multiple in (
        ("model.d_model", settings.d_model, INPUTS),
        ("model.d_ff", settings.d_ff, INPUTS),
        ("model.dialect.decoder_d_ff", settings.dialect.decoder_d_ff or 0, INPUTS),
        ("a target vocabulary", vocab_size, OUTPUTS),
    ):
        if size % multiple:
            raise ValueError(
                f"{path} has {name} of {size}, but int8 products in Firefox need a multiple of "
                f"{multiple}; export without --quantize"
            )


def _tensors(foreign: Foreign, settings: ModelConfig) -> dict[str, np.ndarray]:
    """Return all tensors by Marian's names, except the output bias."""
    tensors: dict[str, np.ndarray] = {}
    for weight, tensor in foreign.tensors.items():
        if isinstance(weight, Slot):
            name = slot_name(weight, settings.norm)
            tensors[name] = tensor if tensor.ndim == 2 else tensor[np.newaxis]
    for table, name in TABLES[settings.tie_embeddings].items():
        matrix = foreign.tensors[table]
        tensors[name] = np.ascontiguousarray(matrix.T) if name == TRANSPOSED else matrix
    return tensors


def _multipliers(
    settings: ModelConfig, ranges: Mapping[WeightName, float]
) -> dict[str, np.ndarray]:
    """Return the factors (1, 1) by which an engine multiplies inputs to round them to int8."""
    multipliers: dict[str, np.ndarray] = {}
    for weight, largest in ranges.items():
        multiplier = np.array([[127 / (largest or 1)]], np.float32)
        if isinstance(weight, Slot):
            multipliers[slot_name(weight, settings.norm) + ALPHA] = multiplier
        else:  # the output matrix, which is called "none" when a shortlist is used
            multipliers[TABLES[settings.tie_embeddings][weight] + ALPHA] = multiplier
            multipliers["none" + ALPHA] = multiplier
    return multipliers


def _options(foreign: Foreign, settings: ModelConfig) -> marian_files.MarianOptions:
    before, after, top = CHAINS[settings.norm]
    tie = settings.tie_embeddings
    autoreg = {"attention": "self-attention", "ssru": "rnn"}
    values = {
        "type": "transformer",
        "dim-vocabs": [len(foreign.source.pieces), len(foreign.target.pieces)],
        "dim-emb": settings.d_model,
        "enc-depth": settings.num_layers,
        "dec-depth": settings.num_decoder_layers or settings.num_layers,
        "transformer-heads": settings.num_heads,
        "transformer-dim-ffn": settings.d_ff,
        "transformer-decoder-dim-ffn": settings.dialect.decoder_d_ff or settings.d_ff,
        "transformer-ffn-depth": 2,
        "transformer-decoder-ffn-depth": 2,
        "transformer-ffn-activation": settings.activation,
        "transformer-preprocess": before,
        "transformer-postprocess": after,
        "transformer-postprocess-top": top,
        "transformer-postprocess-emb": "d",
        "transformer-decoder-autoreg": autoreg[settings.decoder],
        "dec-cell": "ssru",
        "transformer-rnn-projection": False,
        "transformer-guided-alignment-layer": "last",
        "transformer-tied-layers": [],
        "transformer-train-position-embeddings": False,
        "transformer-no-projection": False,
        "transformer-no-bias": False,
        "transformer-no-affine": False,
        "transformer-dim-aan": 2048,
        "transformer-aan-depth": 2,
        "transformer-aan-activation": "swish",
        "transformer-aan-nogate": False,
        "tied-embeddings": tie == "output",
        "tied-embeddings-src": tie == "input",
        "tied-embeddings-all": tie == "all",
        "right-left": False,
        "input-types": [],
        "skip": False,
        "layer-normalization": False,
        "lemma-dim-emb": 0,
        "ulr": False,
        "version": VERSION,
    }
    first = foreign.record.get("details", {}).get("options", {})
    omits = bool(first.get("output-omit-bias")) and not np.any(foreign.tensors[OUTPUT_BIAS])
    return values | first | {"output-omit-bias": omits}


def _write_decoder(folder: Path, foreign: Foreign, config: Config) -> None:
    """Write decoder.yml, the vocabularies and the shortlist.

    A vocabulary is written as the SentencePiece model if that has the model's ids, otherwise as
    YAML. A vocabulary of both sides is vocab.spm, as in Firefox.
    """
    vocabularies = {"source": foreign.source, "target": foreign.target}
    for name, vocabulary in vocabularies.items():
        (folder / f"{name}.spm").write_bytes(vocabulary.model)
    have_ids_of_models = all(
        read_vocabulary(folder / f"{name}.spm") == vocabulary.pieces
        for name, vocabulary in vocabularies.items()
    )
    if have_ids_of_models and foreign.source.model == foreign.target.model:
        files = ["vocab.spm", "vocab.spm"]
        (folder / "source.spm").rename(folder / "vocab.spm")
        (folder / "target.spm").unlink()
    elif have_ids_of_models:
        files = ["source.spm", "target.spm"]
    elif foreign.shares_vocabulary:
        files = ["vocab.yml", "vocab.yml"]
        _write_yaml_vocabulary(folder / "vocab.yml", foreign.source)
    else:
        files = ["source.vocab.yml", "target.vocab.yml"]
        for name, vocabulary in vocabularies.items():
            _write_yaml_vocabulary(folder / f"{name}.vocab.yml", vocabulary)
    decoder = {
        "relative-paths": True,
        "models": ["model.npz"],
        "vocabs": files,
        "beam-size": config.decoding.beam_size,
        "normalize": config.decoding.length_penalty,
        "allow-unk": config.model.dialect.allow_unknown,
        "word-penalty": 0,
        "mini-batch": 32,
        "maxi-batch": 100,
        "maxi-batch-sort": "src",
    }
    if not config.model.dialect.extra_length:  # otherwise Marian's default applies
        decoder["max-length-factor"] = config.model.dialect.max_length_factor
    if foreign.shortlist is not None:
        sides = (foreign.source.pieces, foreign.target.pieces)
        decoder["shortlist"] = write_tables(folder, foreign.shortlist, *sides)
    text = yaml.safe_dump(decoder, sort_keys=False)
    (folder / "decoder.yml").write_text(text, encoding="utf-8")


def _write_yaml_vocabulary(path: Path, vocabulary: Vocabulary) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number, piece in enumerate(vocabulary.pieces):
            file.write(f"{json.dumps(piece, ensure_ascii=False)}: {number}\n")
