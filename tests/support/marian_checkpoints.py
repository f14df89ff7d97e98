"""The committed checkpoints (scripts/oracles), assembled as folders."""

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from support.nightly import sampled
from support.pytorch_writer import write_pytorch

from tfformer.checkpoints.hugging_face.weights import INDEX, SAFETENSORS
from tfformer.checkpoints.marian import files as marian_files
from tfformer.checkpoints.tensor_files import read_safetensors, write_safetensors
from tfformer.checkpoints.weight_names import variables

FIXTURES = Path(__file__).parent / "marian"
MULTILINGUAL = {  # scripts/oracles/make_m2m100_fixtures.py -> source and target
    "M2M": ("en", "de"),
    "NLLB": ("eng_Latn", "deu_Latn"),
}
MARIAN = tuple("ABCDEFGHI")
NPZ = "model.npz"
NAMES = (*MARIAN, *MULTILINGUAL)
BY_DAY = ("A", "C", "H", "I", "M2M")


def each(names: Iterable[str], by_day: Sequence[str] = BY_DAY) -> list:
    """Return the fixtures as parameters of a test; those outside `by_day` are nightly."""
    return sampled(names, by_day)


class Answers(NamedTuple):
    """The stored outputs of Transformers 5.23 for a checkpoint."""

    texts: dict  # expected.json
    arrays: dict[str, np.ndarray]  # expected.npz


def checkpoint(name: str, folder: Path) -> Path:
    """Copy a fixture and its SentencePiece models into a new folder; returns it."""
    target = folder / name
    target.mkdir()
    models = [] if name in MULTILINGUAL else [FIXTURES / "source.spm", FIXTURES / "target.spm"]
    for file in [*(FIXTURES / name).iterdir(), *models]:
        if not file.name.startswith("expected"):
            shutil.copy(file, target)
    return target


def languages(name: str) -> dict[str, str]:
    """Return the language arguments with which `import_model` imports a fixture."""
    return dict(
        zip(("source_language", "target_language"), MULTILINGUAL.get(name, ()), strict=False)
    )


def answers(name: str) -> Answers:
    texts = json.loads((FIXTURES / name / "expected.json").read_text(encoding="utf-8"))
    with np.load(FIXTURES / name / "expected.npz") as arrays:
        return Answers(texts, dict(arrays))


def put(model, tensors) -> None:
    """Assign arrays to a model's weights by name."""
    for variable, slots in variables(model):
        variable.assign(np.concatenate([tensors[slot] for slot in slots], axis=-1))


def edit_json(path: Path, **changes) -> None:
    """Change keys in a JSON file; None removes a key."""
    values = json.loads(path.read_text(encoding="utf-8")) | changes
    kept = {key: value for key, value in values.items() if value is not None}
    path.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")


def every_kind(folder: Path) -> dict[str, Path]:
    """Return name -> folder for a small checkpoint of each file format.

    Multilingual checkpoints also need the arguments `languages(name)`.
    """
    folders = {name: checkpoint(name, folder) for name in ("A", "C", "I", *MULTILINGUAL)}
    for name in ("shards", "torch"):
        folders[name] = shutil.copytree(folders["A"], folder / name)
        tensors = read_safetensors(folders["A"] / SAFETENSORS)
        (folders[name] / SAFETENSORS).unlink()
        if name == "torch":
            write_pytorch(folders[name] / "pytorch_model.bin", tensors)
        else:
            write_shards(folders[name], tensors)
    folders["npz"] = write_marian_model("separate", folder)
    folders["bin"] = write_marian_model("target", folder)
    marian_files.write_bin(folders["bin"] / "model.bin", *marian_files.read(folders["bin"] / NPZ))
    (folders["bin"] / NPZ).unlink()
    edit_yaml(folders["bin"] / "decoder.yml", models=["model.bin"])
    return folders


def write_shards(folder: Path, tensors: dict[str, np.ndarray]) -> None:
    """Write tensors as two files of safetensors and their index."""
    weight_map = {}
    for number, names in enumerate((sorted(tensors)[::2], sorted(tensors)[1::2])):
        shard = f"model-{number}.safetensors"
        write_safetensors(folder / shard, {name: np.array(tensors[name]) for name in names})
        weight_map |= dict.fromkeys(names, shard)
    (folder / f"{SAFETENSORS}{INDEX}").write_text(json.dumps({"weight_map": weight_map}))


def edit_yaml(path: Path, **changes) -> None:
    """Change keys of a YAML file."""
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))


OPTIONS = {  # as Marian 1.12 writes them, including some that do not matter here
    "type": "transformer",
    "dim-emb": 16,
    "enc-depth": 2,
    "dec-depth": 1,
    "transformer-heads": 4,
    "transformer-dim-ffn": 24,
    "transformer-ffn-activation": "swish",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-top": "",
    "tied-embeddings": False,
    "tied-embeddings-all": True,
    "version": "v1.12.42 b7be0e964 2025-05-24 22:34:42 -0700",
}
PRE = {
    "transformer-preprocess": "n",
    "transformer-postprocess": "da",
    "transformer-postprocess-top": "n",
}
SEPARATE = {"tied-embeddings-all": False, "transformer-ffn-activation": "relu"}
VARIANTS = {  # name -> the options that differ, and the SentencePiece model of each side
    "shared": ({}, ("source", "source")),
    "separate": (SEPARATE, ("source", "target")),
    "target": ({**SEPARATE, "tied-embeddings": True}, ("source", "target")),
    "pre": (PRE, ("source", "source")),
}


def write_marian_model(name: str, folder: Path, **changed) -> Path:
    """Write a random model as Marian does: model.npz, SentencePiece models and decoder.yml."""
    path = folder / f"marian-{name}"
    path.mkdir()
    options, sides = VARIANTS[name]
    options = OPTIONS | {"dim-vocabs": [72, 72]} | options | changed
    random = np.random.default_rng(sum(map(ord, name)))
    tensors = {}
    for tensor, shape in marian_shapes(options).items():
        scale = 1 if "_ln_scale" in tensor else 0
        tensors[tensor] = (scale + random.standard_normal(shape) * 0.4).astype(np.float32)
    text = yaml.safe_dump(options).encode() + bytes(9)
    tensors["special:model.yml"] = np.frombuffer(text, np.int8)
    np.savez(path / "model.npz", **tensors)
    for side in set(sides):
        shutil.copy(FIXTURES / f"{side}.spm", path)
    decoder = {
        "models": ["/elsewhere/model.npz"],
        "vocabs": [f"/elsewhere/{side}.spm" for side in sides],
        "beam-size": 6,
        "normalize": 1,
        "word-penalty": 0,
    }
    (path / "decoder.yml").write_text(yaml.safe_dump(decoder))
    return path


def marian_shapes(options: dict) -> dict[str, tuple[int, ...]]:
    """Marian's tensors and their shapes, by the names of its models/transformer.h."""
    d, ff = options["dim-emb"], options["transformer-dim-ffn"]
    source, target = options["dim-vocabs"]
    end = "_pre" if "n" in options["transformer-preprocess"] else ""
    if options["tied-embeddings-all"]:
        shapes = {"Wemb": (source, d)}
    else:
        shapes = {"encoder_Wemb": (source, d), "decoder_Wemb": (target, d)}
        if not options["tied-embeddings"]:
            shapes["decoder_ff_logit_out_W"] = (d, target)
    shapes["decoder_ff_logit_out_b"] = (1, target)
    for stack, depth in (("encoder", options["enc-depth"]), ("decoder", options["dec-depth"])):
        for layer in range(1, depth + 1):
            begin = f"{stack}_l{layer}"
            for block in ("self", "context")[: 1 + (stack == "decoder")]:
                for letter in "qkvo":
                    shapes[f"{begin}_{block}_W{letter}"] = (d, d)
                    shapes[f"{begin}_{block}_b{letter}"] = (1, d)
                for kind in ("scale", "bias"):
                    shapes[f"{begin}_{block}_Wo_ln_{kind}{end}"] = (1, d)
            shapes |= {f"{begin}_ffn_W1": (d, ff), f"{begin}_ffn_b1": (1, ff)}
            shapes |= {f"{begin}_ffn_W2": (ff, d), f"{begin}_ffn_b2": (1, d)}
            for kind in ("scale", "bias"):
                shapes[f"{begin}_ffn_ffn_ln_{kind}{end}"] = (1, d)
        if end:
            shapes |= {f"{stack}_top_ln_{kind}": (1, d) for kind in ("scale", "bias")}
    return shapes
