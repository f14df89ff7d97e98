"""What a recipe may say: frozen dataclasses, presets, round trip through YAML and JSON. Imports no TensorFlow."""

import dataclasses
import json
import re
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path

PRESETS = {
    "tiny": {"num_layers": 4, "d_model": 128, "num_heads": 4, "d_ff": 256},
    "small": {"num_layers": 6, "d_model": 256, "num_heads": 4, "d_ff": 1024},
    "base": {"num_layers": 6, "d_model": 512, "num_heads": 8, "d_ff": 2048, "dropout": 0.1},
    "big": {"num_layers": 6, "d_model": 1024, "num_heads": 16, "d_ff": 4096, "dropout": 0.3},
}


@dataclass(frozen=True)
class ModelConfig:
    """The arguments of `tfformer.Transformer` but for the vocabulary sizes, which the tokenizers give."""

    num_layers: int = 6
    num_decoder_layers: int | None = None
    d_model: int = 512
    num_heads: int = 8
    d_ff: int = 2048
    dropout: float = 0.1
    activation: typing.Literal["relu", "gelu", "swish"] = "relu"
    norm: typing.Literal["post", "pre"] = "post"
    tie_embeddings: typing.Literal["none", "output", "all"] = "all"
    output_bias: bool = False
    use_bias: bool = True
    epsilon: float = 1e-6
    position_layout: typing.Literal["interleaved", "halves"] = "interleaved"


@dataclass(frozen=True)
class TokenizerConfig:
    """The SentencePiece vocabulary trained from the training text; `shared` means one for both languages."""

    vocab_size: int = 8000
    model_type: typing.Literal["unigram", "bpe"] = "unigram"
    shared: bool = True
    character_coverage: float = 1.0


@dataclass(frozen=True)
class DataConfig:
    """Where the text comes from, and how it is cut into batches.

    `train` and `valid` are each a pair of text files, one TSV file, `tfds:NAME` or `phrasebook:SPLIT`; paths are
    relative to `folder`. `max_length` counts tokens with the end token, `batch_tokens` the tokens of one side.
    """

    train: str | list[str] = ""
    valid: str | list[str] = ""
    folder: str = "."
    languages: list[str] | None = None
    max_length: int = 128
    batch_tokens: int = 4096


@dataclass(frozen=True)
class TrainingConfig:
    """How `model.fit` is driven. An epoch is one pass over the text; minutes include validation.

    `patience` and `plateau_patience` count validations without a better BLEU. `learning_rate` is the highest one
    (inverse_sqrt) or the first one (plateau); the schedule `warmup` has the paper's, times `learning_rate_scale`.
    """

    epochs: int = 20
    max_minutes: float | None = None
    seed: int = 1
    optimizer: typing.Literal["adam", "adamw"] = "adam"
    weight_decay: float = 0.0
    schedule: typing.Literal["warmup", "inverse_sqrt", "plateau"] = "warmup"
    learning_rate: float | None = None
    learning_rate_scale: float = 1.0
    warmup_steps: int = 4000
    label_smoothing: float = 0.1
    clip_norm: float | None = None
    accumulate_steps: int = 1
    ema_momentum: float | None = None
    validate_every: int = 1
    patience: int | None = None
    plateau_factor: float = 0.5
    plateau_patience: int = 2
    dtype: typing.Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    jit_compile: bool = False


@dataclass(frozen=True)
class DecodingConfig:
    """The search used unless told otherwise; `length_penalty` is alpha of Wu et al. 2016, eq. 14."""

    beam_size: int = 4
    length_penalty: float = 0.6


@dataclass(frozen=True)
class Config:
    """One run, whole: everything that decides its result."""

    model: ModelConfig = field(default_factory=ModelConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    @classmethod
    def from_dict(cls, values: dict) -> "Config":
        """Checked from plain values; an unknown key or a wrong type is a ValueError that says what is known."""
        sections = {f.name: f.type for f in dataclasses.fields(cls)}
        _check_keys("recipe", values, sections)
        return cls(**{name: _section(kind, name, values.get(name)) for name, kind in sections.items()}).checked()

    def to_dict(self) -> dict:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, text: str) -> "Config":
        return cls.from_dict(json.loads(text))

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def checked(self) -> "Config":
        """The rules that no single value's type can say."""
        model, tokenizer, data, training = self.model, self.tokenizer, self.data, self.training
        positive = {
            "model.num_layers": model.num_layers,
            "model.d_ff": model.d_ff,
            "data.max_length": data.max_length,
            "training.epochs": training.epochs,
            "training.warmup_steps": training.warmup_steps,
            "training.accumulate_steps": training.accumulate_steps,
            "training.validate_every": training.validate_every,
            "training.plateau_patience": training.plateau_patience,
            "decoding.beam_size": self.decoding.beam_size,
        }
        for name, value in positive.items():
            _rule(value >= 1, name, value, "must be at least 1")
        _rule(0 <= model.dropout < 1, "model.dropout", model.dropout, "must be at least 0 and below 1")
        _rule(
            data.max_length <= data.batch_tokens,
            "data.batch_tokens",
            data.batch_tokens,
            f"must hold one sentence of data.max_length={data.max_length} tokens",
        )
        _rule(
            tokenizer.shared or model.tie_embeddings != "all",
            "model.tie_embeddings",
            "all",
            "needs one vocabulary; set tokenizer.shared=true or model.tie_embeddings=output",
        )
        _rule(
            training.schedule == "warmup" or training.learning_rate is not None,
            "training.learning_rate",
            training.learning_rate,
            f"must be given for training.schedule={training.schedule}",
        )
        return self


def read_recipe(path: Path, overrides: typing.Sequence[str] = ()) -> Config:
    """A YAML file, with `section.key=value` overrides (values in YAML) on top."""
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold sections such as 'model:' and 'data:', not a {type(values).__name__}")
    for override in overrides:
        _override(values, override, yaml.safe_load)
    return Config.from_dict(values)


def builtin_recipes() -> dict[str, Path]:
    """Name -> file of the recipes that come with the package."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "recipes").glob("*.yaml"))}


def find_recipe(name: str) -> Path:
    """The file of a built-in recipe, or the path itself."""
    known = builtin_recipes()
    if name in known:
        return known[name]
    if Path(name).is_file():
        return Path(name)
    raise ValueError(f"recipe {name!r} is neither a file nor built in; built in are {', '.join(known)}")


def _override(values: dict, override: str, parse: typing.Callable[[str], object]) -> None:
    key, separator, value = override.partition("=")
    section, dot, name = key.partition(".")
    if not (separator and dot):
        raise ValueError(f"--set {override!r} must read section.key=value, for example training.epochs=5")
    values.setdefault(section, {})
    if not isinstance(values[section], dict):
        raise ValueError(f"--set {override!r}: section {section!r} of the recipe holds no keys")
    values[section][name] = parse(value)


def _section(kind: type, name: str, values: dict | None) -> object:
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise ValueError(f"section {name!r} must hold keys, not {values!r}")
    if kind is ModelConfig and "preset" in values:
        preset = values["preset"]
        if preset not in PRESETS:
            raise ValueError(f"model.preset={preset!r} is not known; the presets are {', '.join(PRESETS)}")
        values = PRESETS[preset] | {key: value for key, value in values.items() if key != "preset"}
    hints = typing.get_type_hints(kind)
    _check_keys(f"section {name!r}", values, hints)
    return kind(**{key: _typed(hints[key], f"{name}.{key}", value) for key, value in values.items()})


def _check_keys(place: str, values: dict, known: typing.Iterable[str]) -> None:
    for key in values:
        if key not in known:
            raise ValueError(f"{place} has an unknown key {key!r}; known are {', '.join(known)}")


def _typed(hint: object, name: str, value: object) -> object:
    """`value` as the type hint wants it; a whole number may stand for a float, and so may 1e-6, a text to YAML 1.1."""
    if typing.get_origin(hint) is typing.Literal:
        _rule(value in typing.get_args(hint), name, value, f"must be one of {', '.join(typing.get_args(hint))}")
        return value
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for kind in kinds:
        if kind is float and (type(value) in (int, float) or re.fullmatch(r"[-+]?\d+e[-+]?\d+", str(value))):
            return float(value)
        if typing.get_origin(kind) is list and isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        if type(value) is kind:
            return value
    wanted = " or ".join("nothing" if kind is type(None) else str(getattr(kind, "__name__", kind)) for kind in kinds)
    raise ValueError(f"{name}={value!r} must be of type {wanted}")


def _rule(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise ValueError(f"{name}={value!r} {rule}")
