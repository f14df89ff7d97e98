"""What a recipe may say: frozen dataclasses, presets, round trip through YAML and JSON. Imports no TensorFlow."""

import dataclasses
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

NAMES_OF_TYPES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list[str]: "a list of texts (put no, yes, on and off in quotes)",
}

RUN_CONFIG = "config.json"  # the file that makes a folder a run directory

ALMOST_ONE = 1 - 1e-9
BILLION = 10**9

LIMITS = {
    "model.num_layers": (1, 1000),
    "model.num_decoder_layers": (1, 1000),
    "model.d_model": (2, 10**6),
    "model.num_heads": (1, 10**6),
    "model.d_ff": (1, 10**6),
    "model.dropout": (0, ALMOST_ONE),
    "model.epsilon": (0, 1),
    "tokenizer.vocab_size": (5, BILLION),
    "tokenizer.character_coverage": (0.98, 1),
    "data.max_length": (2, BILLION),
    "data.batch_tokens": (2, BILLION),
    "data.sampling_alpha": (0, 1),
    "training.epochs": (1, BILLION),
    "training.epoch_steps": (1, BILLION),
    "training.max_minutes": (1e-6, BILLION),
    "training.seed": (0, 2**31 - 1),
    "training.weight_decay": (0, 1),
    "training.learning_rate": (0, 1000),
    "training.learning_rate_scale": (0, 1000),
    "training.warmup_steps": (1, BILLION),
    "training.total_steps": (2, BILLION),
    "training.label_smoothing": (0, ALMOST_ONE),
    "training.r_drop": (0, 1000),
    "training.clip_norm": (1e-9, BILLION),
    "training.accumulate_steps": (1, BILLION),
    "training.shards": (1, 1000),
    "training.ema_momentum": (0, ALMOST_ONE),
    "training.validate_every": (1, BILLION),
    "training.patience": (1, BILLION),
    "training.plateau_factor": (1e-9, ALMOST_ONE),
    "training.plateau_patience": (1, BILLION),
    "decoding.beam_size": (1, 1000),
    "decoding.length_penalty": (0, 100),
}


@dataclass(frozen=True)
class ModelConfig:
    """The arguments of `tfformer.Transformer` but for the vocabulary sizes, which the tokenizers give.

    With the architecture `decoder` those of `tfformer.LanguageModel`, which has neither source nor decoder layers.
    """

    architecture: typing.Literal["encoder-decoder", "decoder"] = "encoder-decoder"
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

    `train` and `valid` are each a pair of text files, one TSV file, `tfds:NAME` or `phrasebook:SPLIT`; for a language
    model one text file in place of the pair, and one of `languages`. Paths are relative to `folder`, `languages` choose
    the sides of a TFDS data set. `max_length` counts tokens with the end token, `batch_tokens` the tokens of one side.
    With `sampling_alpha` each pass over the training text cuts it anew at random, see `Tokenizer.sample`.
    """

    train: str | list[str] = ""
    valid: str | list[str] = ""
    folder: str = "."
    languages: list[str] | None = None
    max_length: int = 128
    batch_tokens: int = 4096
    sampling_alpha: float | None = None


@dataclass(frozen=True)
class TrainingConfig:
    """How `model.fit` is driven. An epoch is one pass over the text, or `epoch_steps` steps; validation counts as time.

    An epoch's end is where a run can be resumed from: give `epoch_steps` where a pass takes hours.
    `patience` and `plateau_patience` count validations without a better BLEU, or with no fewer bits per byte.
    `learning_rate` is the highest one (inverse_sqrt, linear) or the first one (plateau); the schedule `warmup` has the
    paper's, times `learning_rate_scale`. The schedule `linear` ends at 0 after `total_steps`. `weight_decay` times the
    rate is what each step takes off the matrices. `r_drop` is the alpha of `RDropCrossEntropy`: each row goes twice
    through the model, so a step takes twice the time and memory. Each batch is learned in `shards` at once, each by
    one thread; give as many as there are cores.
    """

    epochs: int = 20
    epoch_steps: int | None = None
    max_minutes: float | None = None
    seed: int = 1
    optimizer: typing.Literal["adam", "adamw", "muon"] = "adam"
    weight_decay: float = 0.0
    schedule: typing.Literal["warmup", "inverse_sqrt", "linear", "plateau"] = "warmup"
    learning_rate: float | None = None
    learning_rate_scale: float = 1.0
    warmup_steps: int = 4000
    total_steps: int | None = None
    label_smoothing: float = 0.1
    r_drop: float = 0.0
    clip_norm: float | None = None
    accumulate_steps: int = 1
    shards: int = 1
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
        return cls(
            **{name: _section(kind, name, values.get(name)) for name, kind in sections.items()}
        ).checked()

    def to_dict(self) -> dict:
        return dataclasses.asdict(self)

    def checked(self) -> "Config":
        """The rules that no single value's type can say."""
        for name, (low, high) in LIMITS.items():
            section, key = name.split(".")
            value = getattr(getattr(self, section), key)
            _rule(
                value is None or low <= value <= high,
                name,
                value,
                f"must be from {low:g} to {high:g}",
            )
        for name, value, holds, rule in self._rules():
            _rule(holds, name, value, rule)
        return self

    def _rules(self) -> tuple[tuple[str, object, bool, str], ...]:
        """What must hold between values: the name and value that would be wrong, whether it holds, and the rule."""
        model, tokenizer, data, training = self.model, self.tokenizer, self.data, self.training
        has_source = model.architecture == "encoder-decoder"
        return (
            ("model.d_model", model.d_model, model.d_model % 2 == 0, "must be even"),
            (
                "model.d_model",
                model.d_model,
                model.d_model % model.num_heads == 0,
                f"must be divisible by model.num_heads={model.num_heads}",
            ),
            (
                "data.batch_tokens",
                data.batch_tokens,
                data.max_length <= data.batch_tokens,
                f"must hold one sentence of data.max_length={data.max_length} tokens",
            ),
            (
                "model.tie_embeddings",
                model.tie_embeddings,
                tokenizer.shared or model.tie_embeddings != "all",
                "needs one vocabulary; set tokenizer.shared=true or model.tie_embeddings=output",
            ),
            (
                "model.num_decoder_layers",
                model.num_decoder_layers,
                has_source or model.num_decoder_layers is None,
                "goes with an encoder; with model.architecture=decoder give num_layers alone",
            ),
            (
                "tokenizer.shared",
                tokenizer.shared,
                has_source or tokenizer.shared,
                "needs two languages; with model.architecture=decoder there is one vocabulary",
            ),
            (
                "training.r_drop",
                training.r_drop,
                not training.r_drop or model.dropout > 0,
                "compares two passes with different dropout; set model.dropout above 0",
            ),
            (
                "training.shards",
                training.shards,
                training.shards == 1 or not training.r_drop,
                "must be 1 with training.r_drop, which compares both halves of a batch",
            ),
            (
                "training.learning_rate",
                training.learning_rate,
                (training.learning_rate is None) == (training.schedule == "warmup"),
                "goes with training.schedule=inverse_sqrt, linear or plateau; warmup has learning_rate_scale",
            ),
            (
                "training.total_steps",
                training.total_steps,
                (training.total_steps is None) == (training.schedule != "linear"),
                "goes with training.schedule=linear, and with no other",
            ),
            (
                "training.total_steps",
                training.total_steps,
                training.total_steps is None or training.total_steps > training.warmup_steps,
                f"must be above training.warmup_steps={training.warmup_steps}",
            ),
            (
                "training.weight_decay",
                training.weight_decay,
                training.weight_decay == 0 or training.optimizer != "adam",
                "needs training.optimizer=adamw or muon",
            ),
        )


def read_recipe(path: Path, overrides: typing.Sequence[str] = ()) -> Config:
    """A YAML file, with `section.key=value` overrides (values in YAML) on top."""
    import yaml

    def parse(text: str, place: str) -> object:
        try:
            return yaml.safe_load(text)
        except (yaml.YAMLError, ValueError) as error:
            raise ValueError(f"{place} is not YAML: {' '.join(str(error).split())}") from None

    try:
        values = parse(path.read_text(encoding="utf-8"), str(path)) or {}
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 at byte {error.start + 1}; save the recipe as UTF-8 text"
        ) from None
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} must hold sections such as 'model:' and 'data:', not a {type(values).__name__}"
        )
    for override in overrides:
        _override(values, override, parse)
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
    raise ValueError(
        f"recipe {name!r} is neither a file nor built in; built in are {', '.join(known)}"
    )


def run_config_file(run: str | Path) -> Path:
    """Return the recipe's file of a run directory; FileNotFoundError if there is no run."""
    path = Path(run, RUN_CONFIG)
    if not path.is_file():
        raise FileNotFoundError(
            f"{run} is not a run directory: it has no {RUN_CONFIG}; give the --run-dir of a training"
        )
    return path


def _override(values: dict, override: str, parse: typing.Callable[[str, str], object]) -> None:
    key, separator, value = override.partition("=")
    section, dot, name = key.partition(".")
    if not (separator and dot):
        raise ValueError(
            f"--set {override!r} must read section.key=value, for example training.epochs=5"
        )
    if values.get(section) is None:
        values[section] = {}
    if not isinstance(values[section], dict):
        raise ValueError(f"--set {override!r}: section {section!r} of the recipe holds no keys")
    values[section][name] = parse(value, f"--set {override!r}")


def _section(kind: type, name: str, values: dict | None) -> object:
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise ValueError(f"section {name!r} must hold keys, not {values!r}")
    if kind is ModelConfig and "preset" in values:
        preset = values["preset"]
        if preset not in tuple(PRESETS):
            raise ValueError(
                f"model.preset={preset!r} is not known; the presets are {', '.join(PRESETS)}"
            )
        values = PRESETS[preset] | {key: value for key, value in values.items() if key != "preset"}
    hints = typing.get_type_hints(kind)
    _check_keys(f"section {name!r}", values, hints)
    return kind(
        **{key: _typed(hints[key], f"{name}.{key}", value) for key, value in values.items()}
    )


def _check_keys(place: str, values: dict, known: typing.Iterable[str]) -> None:
    for key in values:
        if key not in known:
            raise ValueError(f"{place} has an unknown key {key!r}; known are {', '.join(known)}")


def _typed(hint: object, name: str, value: object) -> object:
    """`value` as the type hint wants it; a whole number may stand for a float, and so may 1e-6, a text to YAML 1.1."""
    if typing.get_origin(hint) is typing.Literal:
        _rule(
            value in typing.get_args(hint),
            name,
            value,
            f"must be one of {', '.join(typing.get_args(hint))}",
        )
        return value
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for kind in kinds:
        if kind is float and (
            type(value) in (int, float) or re.fullmatch(r"[-+]?\d+e[-+]?\d+", str(value))
        ):
            return float(value)
        if (
            typing.get_origin(kind) is list
            and isinstance(value, list)
            and all(isinstance(item, str) for item in value)
        ):
            return value
        if type(value) is kind:
            return value
    wanted = " or ".join(
        "nothing" if kind is type(None) else NAMES_OF_TYPES[kind] for kind in kinds
    )
    raise ValueError(f"{name}={value!r} must be {wanted}")


def _rule(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise ValueError(f"{name}={value!r} {rule}")
