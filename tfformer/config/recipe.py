"""Recipes as frozen dataclasses, from and to YAML and JSON. Imports no TensorFlow."""

import dataclasses
import functools
import itertools
import os
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from tfformer.config.dialect import LengthNormalization, PositionLayout, PositionTimescale
from tfformer.plain_values import parse_yaml, read_text, shown
from tfformer.special_ids import PLACEHOLDER

T = TypeVar("T")
Activation = Literal["relu", "gelu", "swish"]
Architecture = Literal["encoder-decoder", "decoder"]
ModelType = Literal["unigram", "bpe"]
Norm = Literal["post", "pre", "marian"]
Normalization = Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity", "nmt_nfkc_plain"]
TieEmbeddings = Literal["none", "output", "input", "all"]

# base, big: Vaswani et al. 2017, table 3; tiny, small: our own, whose dropout a recipe sets.
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"num_layers": 4, "d_model": 128, "num_heads": 4, "d_ff": 256},
    "small": {"num_layers": 6, "d_model": 256, "num_heads": 4, "d_ff": 1024},
    "base": {"num_layers": 6, "d_model": 512, "num_heads": 8, "d_ff": 2048, "dropout": 0.1},
    "big": {"num_layers": 6, "d_model": 1024, "num_heads": 16, "d_ff": 4096, "dropout": 0.3},
}

NAMES_OF_TYPES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list[str]: "a list of texts (put no, yes, on and off in quotes)",
    list[Any]: "a list of texts or corpora",
    type(None): "nothing",
}

UNIONS = (types.UnionType, typing.Union)
ALMOST_ONE = 1 - 1e-9  # below 1: a rate of 1 would drop everything
BILLION = 10**9
LARGEST_SEED = 2**31 - 1
SELF_CONTAINED = ("tfds:", "phrasebook:")  # beginnings of a data source with all its sides
CORPUS_KEYS = {"text", "weight"}
TSV = (".tsv", ".tsv.gz")  # ends of a file with both sides


def limited(default: T, low: float, high: float) -> T:
    """Return a dataclass field with limits; None passes if the field's type has it."""
    return field(default=default, metadata={"limits": (low, high)})


@dataclass(frozen=True)
class ModelConfig:
    """The model: the arguments of `tfformer.Transformer` but for its vocabulary sizes.

    The vocabulary sizes come from the tokenizers. For `decoder`, the arguments are those of
    `tfformer.LanguageModel`, which has neither source nor decoder layers. The defaults are the base
    model of Vaswani et al. 2017, table 3. A recipe may name a `preset` and change some of it.

    Example:
        >>> Config.from_dict({"model": {"preset": "tiny", "dropout": 0.3}}).model.d_ff
        256
    """

    architecture: Architecture = "encoder-decoder"  # or a language model
    num_layers: int = limited(6, 1, 1000)  # of the encoder; of the decoder too unless said below
    num_decoder_layers: int | None = limited(None, 1, 1000)  # None: as many as num_layers
    d_model: int = limited(512, 2, 10**6)  # width of embeddings and layers; even
    num_heads: int = limited(8, 1, 10**6)  # of each attention; divides d_model
    d_ff: int = limited(2048, 1, 10**6)  # width inside the feed-forward; often 4 d_model
    dropout: float = limited(0.1, 0, ALMOST_ONE)  # share of values dropped; 0.3 for small corpora
    activation: Activation = "relu"  # in the feed-forward
    # post: after each residual sum; pre: before each sub-layer; marian: before, as marian-decoder
    # decodes such models, for one that is brought from there
    norm: Norm = "post"
    # output: the output's matrix is the target's; input: the source's is the target's; all: both
    tie_embeddings: TieEmbeddings = "all"
    output_bias: bool = False  # a bias for each piece of the vocabulary, on the logits
    use_bias: bool = True  # in the attention's projections; the feed-forward has biases in any case
    epsilon: float = limited(1e-6, 0, 1)  # added to the variance in layer normalisation
    position_layout: PositionLayout = "interleaved"  # or sines first
    position_timescale: PositionTimescale = "paper"  # t2t: Tensor2Tensor's, and so Marian's
    position_offset: int = limited(0, 0, 1000)  # position of the first token; 2 in M2M100
    scale_embedding: bool = True  # embeddings times sqrt(d_model)
    num_decoder_heads: int | None = limited(None, 1, 10**6)  # None: as many as num_heads
    decoder_d_ff: int | None = limited(None, 1, 10**6)  # None: as wide as d_ff
    zero_start: bool = False  # a translation begins with zeros, as Marian's, not a learned vector

    @property
    def has_encoder(self) -> bool:
        """Whether the model reads a source: a translator does, a language model does not."""
        return self.architecture == "encoder-decoder"


@dataclass(frozen=True)
class TokenizerConfig:
    """The SentencePiece vocabulary, trained on the training text."""

    vocab_size: int = limited(8000, 5, BILLION)  # pieces, special ones too; for each language
    model_type: ModelType = "unigram"  # Kudo 2018, or merges
    shared: bool = True  # one vocabulary for both languages
    # nmt_nfkc: NFKC, control characters become spaces; nfkc: keeps them; *_cf: lower case too;
    # nmt_nfkc_plain: curly quotes become straight and soft hyphens go, too; identity: unchanged.
    # NFKC has no NBSP, "…" or full-width punctuation.
    normalization: Normalization = "nmt_nfkc"
    target_normalization: Normalization | None = None  # of a target vocabulary; None: the same
    character_coverage: float = limited(1.0, 0.98, 1)  # share of characters; 0.9995 for Chinese
    symbols: list[str] = field(default_factory=list)  # always one piece; [⟦1⟧, ⟦2⟧]: placeholders
    byte_fallback: bool = False  # unknown characters as bytes, which take 256 pieces
    # Each piece also Capitalised and IN CAPITALS, on top of vocab_size, with embeddings that share
    # what does not depend on case: a few capitals in the text, such as data.augment's, suffice.
    case_variants: bool = False

    @property
    def placeholders(self) -> list[str]:
        """The symbols that may stand for words."""
        return [symbol for symbol in self.symbols if PLACEHOLDER.fullmatch(symbol)]


@dataclass(frozen=True)
class AugmentConfig:
    """Shares of the training text that stand in it a second time, altered.

    The unaltered text is always there whole, so the shares lengthen an epoch. The vocabulary is
    trained on the altered text too.

    Example:
        >>> Config.from_dict({"data": {"augment": {"upper": 0.1}}}).data.augment.upper
        0.1
    """

    upper: float = limited(0.0, 0, 1)  # both sides IN CAPITALS
    title: float = limited(0.0, 0, 1)  # both sides With Capital Initials
    lower: float = limited(0.0, 0, 1)  # both sides in lower case
    typos: float = limited(0.0, 0, 1)  # a slip of the keyboard in the source alone
    placeholders: float = limited(0.0, 0, 1)  # ⟦1⟧ for, or before, words of both sides


@dataclass(frozen=True)
class DataConfig:
    """Where the text comes from, and how it becomes batches.

    `train` and `valid` are each a pair of text files, one TSV file, `tfds:NAME` or
    `phrasebook:SPLIT`; for a language model one text file in place of the pair, and one of
    `languages`. A `*` in the name of a file stands for many parts. A list of these is several
    corpora; of each, `{text: ..., weight: ...}` gives its share of an epoch.
    """

    train: str | list[Any] = ""  # the training text
    valid: str | list[Any] = ""  # the validation text, which decides the weights that are kept
    folder: str = "."  # which the paths of both are relative to
    temperature: float | None = limited(None, 1, 1000)  # shares by size^(1/T); 5 is usual
    cache: str | None = None  # a folder for the encoded training text, which is then mapped
    languages: list[str] | None = None  # [en, de]: sides of TFDS; BLEU's tokenizer
    max_length: int = limited(128, 2, BILLION)  # tokens, the end's too; longer are dropped
    batch_tokens: int = limited(4096, 2, BILLION)  # of a side, with padding; paper: 25,000
    sampling_alpha: float | None = limited(None, 0, 1)  # segments anew each pass; 0.1 to 0.3
    augment: AugmentConfig = field(default_factory=AugmentConfig)  # capitals, slips


@dataclass(frozen=True)
class Corpus:
    """One of the corpora of a text.

    Attributes:
        text: A data source, as `tfformer.data.sources.read_pairs` takes it.
        weight: Its share of an epoch, beside the others' weights; None: by its size.
    """

    text: str | list[str]  # one data source, such as [part-*.en.gz, part-*.de.gz]
    weight: float | None = None  # its share of an epoch, beside the others'; by size if left out


def corpora_of(source: object, setting: str = "data.train") -> list[Corpus]:
    """Divide a data source of a recipe into its corpora.

    Args:
        source: The value of `data.train` or `data.valid`.
        setting: Its name, for messages.

    Returns:
        The corpora; a source that is no list of corpora is one.

    Raises:
        ValueError: The list holds something else.

    Example:
        >>> corpora_of(["a.en", "a.de"])
        [Corpus(text=['a.en', 'a.de'], weight=None)]
        >>> [corpus.text for corpus in corpora_of([["a.en", "a.de"], "tfds:b"])]
        [['a.en', 'a.de'], 'tfds:b']
    """
    if not isinstance(source, list) or _is_one_corpus(source):
        return [Corpus(typing.cast(Any, source))]
    return [_corpus(item, setting) for item in source]


def _is_one_corpus(items: list[Any]) -> bool:
    """Whether a list names files, so that they are the sides of one corpus."""
    if not all(isinstance(item, str | Path) for item in items):
        return False
    return not items or not all(
        str(item).startswith(SELF_CONTAINED) or str(item).endswith(TSV) for item in items
    )


def _corpus(item: object, setting: str) -> Corpus:
    values: dict[str, Any] = item if isinstance(item, dict) else {"text": item}
    text = values.get("text")
    weight = values.get("weight")
    if not (isinstance(text, str) or _is_list_of_texts(text)) or not values.keys() <= CORPUS_KEYS:
        raise ValueError(
            f"{setting} has the corpus {shown(item)}, but a corpus is a file, a list of its two "
            "files, or {text: ..., weight: ...}"
        )
    if weight is not None and not (_is_number(weight) and 0 < float(weight) <= BILLION):
        raise ValueError(
            f"{setting} has the weight {shown(weight)}, but a weight must be above 0 and at most "
            f"{BILLION:g}"
        )
    return Corpus(typing.cast(Any, text), None if weight is None else float(weight))


@dataclass(frozen=True)
class TrainingConfig:
    """How `model.fit` is driven, and which weights are kept.

    `patience` counts validations without a better score: BLEU and, between equals, chrF, or for a
    language model bits per byte. Validation counts as time. With `dtype`
    mixed_bfloat16 or mixed_float16 it computes in that precision too, as a training step does;
    translating, scoring and exporting compute in float32, whose figures differ a little.
    """

    epochs: int = limited(20, 1, BILLION)  # passes over the text, or stretches of epoch_steps
    # For a pass that takes hours: a run can be resumed only from the end of an epoch.
    epoch_steps: int | None = limited(None, 1, BILLION)
    max_minutes: float | None = limited(None, 1e-6, BILLION)  # wall clock, kept through a resume
    seed: int = limited(1, 0, LARGEST_SEED)  # of weights, dropout, order of batches and sampling
    optimizer: Literal["adam", "adamw", "muon"] = "adam"  # adam: section 5.3; muon is often quicker
    weight_decay: float = limited(0.0, 0, 1)  # times the rate, off the matrices each step
    schedule: Literal["warmup", "inverse_sqrt", "linear"] = "warmup"  # equation 3; linear: to 0
    learning_rate: float | None = limited(None, 0, 1000)  # the peak; warmup has the paper's
    warmup_steps: int = limited(4000, 1, BILLION)  # updates of rising rate; 4,000 in section 5.3
    label_smoothing: float = limited(0.1, 0, ALMOST_ONE)  # 0.1 in section 5.4
    clip_norm: float | None = limited(None, 1e-9, BILLION)  # most that the gradient's norm may be
    accumulate_steps: int = limited(1, 1, BILLION)  # batches an update
    shards: int = limited(1, 1, 1000)  # parts of a batch in parallel, a thread each; one a core
    # mirrored: all GPUs of this machine; multi_worker: the processes that TF_CONFIG names
    strategy: Literal["one_device", "mirrored", "multi_worker"] = "one_device"
    wait_minutes: float = limited(30, 0.01, BILLION)  # for another worker, its validation too
    ema_momentum: float | None = limited(None, 0, ALMOST_ONE)  # of averaged weights; 0.99 usual
    validate_every: int = limited(1, 1, BILLION)  # epochs; the last one is validated in any case
    bleu_tokenizer: Literal[
        "auto",
        "13a",
        "intl",
        "char",
        "zh",
        "ja-mecab",
        "ko-mecab",
        "flores101",
        "flores200",
        "none",
    ] = "auto"  # sacreBLEU's; auto: by the last of data.languages, 13a where there is a space
    patience: int | None = limited(None, 1, BILLION)  # validations; None: all epochs
    dtype: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"  # of the arithmetic
    jit_compile: bool = False  # XLA, for which batches are padded to 16 shapes


@dataclass(frozen=True)
class DecodingConfig:
    """The search used unless told otherwise."""

    beam_size: int = limited(4, 1, 1000)  # hypotheses a sentence; 4 in section 6.1, 1 is greedy
    length_penalty: float = limited(0.6, 0, 100)  # alpha of Wu et al. 2016, equation 14
    length_normalization: LengthNormalization = "wu"  # power: length^alpha, as Marian has it
    narrowing: bool = False  # the beam loses a place to each hypothesis that ends, as in Marian
    allow_unknown: bool = True  # False: a search never takes the unknown token, as in Marian
    max_length_factor: float = limited(1.0, 0.01, 1000)  # for each token of the source, at most
    extra_length: int = limited(50, 0, BILLION)  # more tokens than that, at most (section 6.1)


@dataclass(frozen=True)
class Config:
    """One run, whole: everything that decides its result.

    Args:
        model: The sizes and the form of the model.
        tokenizer: The vocabulary.
        data: The text, and how it becomes batches.
        training: Optimizer, schedule, precision, validation.
        decoding: The search, unless told otherwise.

    Example:
        >>> import tfformer
        >>> config = tfformer.Config.from_dict({"training": {"epochs": 3}})
        >>> config.training.epochs, config.decoding.beam_size
        (3, 4)
        >>> tfformer.Config.from_dict({"training": {"epochs": 0}})
        Traceback (most recent call last):
            ...
        ValueError: training.epochs=0 must be from 1 to 1,000,000,000
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Config":
        """Check plain values and fill in the defaults.

        Args:
            values: Section -> key -> value, as YAML or JSON give them.

        Returns:
            The recipe.

        Raises:
            ValueError: A key is unknown, a value has the wrong type or breaks a rule.
        """
        kinds = typing.get_type_hints(cls)
        _check_keys("recipe", values, kinds)
        sections = {name: _section(kind, name, values.get(name)) for name, kind in kinds.items()}
        return cls(**sections).checked()

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Section -> key -> plain value; `from_dict` makes the same recipe of it."""
        return dataclasses.asdict(self)

    def checked(self) -> "Config":
        """Return the recipe itself, or raise ValueError where a rule does not hold."""
        rules = (
            self._limits(),
            self._rules_of_corpora(),
            self._rules_of_model(),
            self._rules_of_text(),
            self._rules_of_devices(),
            self._rules_of_schedule(),
        )
        for holds, setting, rule in itertools.chain(*rules):
            _require(holds, setting, self._value(setting), rule)
        return self

    def _value(self, setting: str) -> object:
        return functools.reduce(getattr, setting.split("."), self)

    # Each yields of a rule whether it holds, the setting, and the rule itself.

    def _limits(self) -> Iterator[tuple[bool, str, str]]:
        """Of each field with limits: whether they hold, the setting, and the rule."""
        for setting, key in _fields(self):
            if "limits" in key.metadata:
                value: Any = self._value(setting)
                low, high = key.metadata["limits"]
                holds = value is None or low <= value <= high
                yield holds, setting, _range(low, high)

    def _rules_of_corpora(self) -> Iterator[tuple[bool, str, str]]:
        weights = [corpus.weight for corpus in corpora_of(self.data.train, "data.train")]
        weighted = len(weights) - weights.count(None)
        yield (
            weighted in (0, len(weights)),
            "data.train",
            "must have a weight for each corpus, or for none",
        )
        yield (
            not weighted or self.data.temperature is None,
            "data.temperature",
            "decides the shares by itself; leave out the weights of data.train",
        )
        valid = corpora_of(self.data.valid, "data.valid")
        yield (
            all(corpus.weight is None for corpus in valid),
            "data.valid",
            "is used whole; leave out its weights",
        )
        yield (
            self.data.cache is None or self.data.sampling_alpha is None,
            "data.cache",
            "keeps one segmentation; leave out data.sampling_alpha",
        )

    def _rules_of_model(self) -> Iterator[tuple[bool, str, str]]:
        model = self.model
        yield model.d_model % 2 == 0, "model.d_model", "must be even"
        yield (
            model.d_model % model.num_heads == 0,
            "model.d_model",
            f"must be divisible by model.num_heads={model.num_heads}",
        )
        yield (
            model.d_model % (model.num_decoder_heads or model.num_heads) == 0,
            "model.num_decoder_heads",
            f"must divide model.d_model={model.d_model}",
        )
        yield (
            model.has_encoder or model.norm != "marian",
            "model.norm",
            "is for translators of Marian; with model.architecture=decoder choose post or pre",
        )
        for setting in ("num_decoder_layers", "num_decoder_heads", "decoder_d_ff", "zero_start"):
            yield (
                model.has_encoder or not getattr(model, setting),
                f"model.{setting}",
                "goes with an encoder; with model.architecture=decoder leave it out",
            )
        yield (
            self.tokenizer.shared or model.tie_embeddings not in ("all", "input"),
            "model.tie_embeddings",
            "needs one vocabulary; set tokenizer.shared=true or model.tie_embeddings=output",
        )

    def _rules_of_text(self) -> Iterator[tuple[bool, str, str]]:
        tokenizer, data = self.tokenizer, self.data
        has_encoder = self.model.has_encoder
        yield (
            data.max_length <= data.batch_tokens,
            "data.batch_tokens",
            f"must hold one sentence of data.max_length={data.max_length} tokens",
        )
        yield (
            has_encoder or tokenizer.shared,
            "tokenizer.shared",
            "needs two languages; with model.architecture=decoder there is one vocabulary",
        )
        yield (
            tokenizer.target_normalization is None or not tokenizer.shared,
            "tokenizer.target_normalization",
            "needs a vocabulary of the target; set tokenizer.shared=false",
        )
        yield (
            not tokenizer.case_variants or tokenizer.model_type == "unigram",
            "tokenizer.model_type",
            "has no merges for the capitals of tokenizer.case_variants; set it to unigram",
        )
        yield (
            not has_encoder or data.languages is None or len(data.languages) == 2,
            "data.languages",
            "must name two, source and target, such as [en, de]",
        )
        for setting in ("typos", "placeholders"):
            yield (
                has_encoder or getattr(data.augment, setting) == 0,
                f"data.augment.{setting}",
                "needs a source; with model.architecture=decoder leave it out",
            )
        yield (
            data.augment.placeholders == 0 or tokenizer.placeholders != [],
            "data.augment.placeholders",
            "needs symbols to stand for words; set tokenizer.symbols, such as [⟦1⟧, ⟦2⟧]",
        )

    def _rules_of_devices(self) -> Iterator[tuple[bool, str, str]]:
        training = self.training
        yield (
            training.strategy == "one_device" or not training.jit_compile,
            "training.strategy",
            "must be one_device with training.jit_compile, which compiles for one device",
        )
        yield (
            training.strategy != "multi_worker" or self.data.sampling_alpha is None,
            "training.strategy",
            "must not be multi_worker with data.sampling_alpha, which draws other segmentations in "
            "each process",
        )

    def _rules_of_schedule(self) -> Iterator[tuple[bool, str, str]]:
        training = self.training
        yield (
            (training.learning_rate is None) == (training.schedule == "warmup"),
            "training.learning_rate",
            "is the peak of training.schedule=inverse_sqrt or linear; leave it out with warmup",
        )
        yield (
            training.weight_decay == 0 or training.optimizer != "adam",
            "training.weight_decay",
            "needs training.optimizer=adamw or muon",
        )


def read_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a recipe.

    Args:
        path: A YAML file of up to 64 KiB.
        overrides: `section.key=value` with values in YAML, which go on top.

    Returns:
        The recipe, checked.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no recipe, or an override is none.

    Example:
        >>> read_recipe(find_recipe("phrasebook"), ["training.epochs=2"]).training.epochs
        2
    """
    values = parse_yaml(read_text(Path(path)), str(path)) or {}
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} must hold sections such as 'model:' and 'data:', not a {type(values).__name__}"
        )
    for override in overrides:
        _override(values, override)
    return Config.from_dict(values)


def builtin_recipes() -> dict[str, Path]:
    """Name -> file of the recipes that come with the package."""
    return {
        path.stem: path for path in sorted((Path(__file__).parents[1] / "recipes").glob("*.yaml"))
    }


def find_recipe(name: str) -> Path:
    """The file of a built-in recipe, or the path itself."""
    known = builtin_recipes()
    if name in known:
        return known[name]
    if os.path.isfile(name):  # False for a name that no file can have, too
        return Path(name)
    raise ValueError(
        f"recipe {shown(name)} is neither a file nor built in; built in are {', '.join(known)}"
    )


def _override(values: dict[str, Any], override: str) -> None:
    key, separator, value = override.partition("=")
    section, dot, name = key.partition(".")
    if not (separator and dot):
        raise ValueError(
            f"--set {shown(override)} must read section.key=value, for example training.epochs=5"
        )
    if values.get(section) is None:
        values[section] = {}
    if not isinstance(values[section], dict):
        raise ValueError(
            f"--set {shown(override)}: section {shown(section)} of the recipe holds no keys"
        )
    values[section][name] = parse_yaml(value, f"--set {shown(override)}")


def _fields(section: Any, place: str = "") -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """Yield each field of a recipe or a section, with its setting: `data.max_length`."""
    for key in dataclasses.fields(section):
        value = getattr(section, key.name)
        if dataclasses.is_dataclass(value):
            yield from _fields(value, f"{place}{key.name}.")
        else:
            yield f"{place}{key.name}", key


def _section(kind: type[T], name: str, values: object) -> T:
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise ValueError(f"section {name!r} must hold keys, not {shown(values)}")
    if kind is ModelConfig and "preset" in values:
        values = _with_preset(values)
    hints = typing.get_type_hints(kind)
    _check_keys(f"section {name!r}", values, hints)
    return kind(
        **{key: _typed(hints[key], f"{name}.{key}", value) for key, value in values.items()}
    )


def _with_preset(values: dict[str, Any]) -> dict[str, Any]:
    """The values on top of their preset's."""
    preset = values["preset"]
    if preset not in tuple(PRESETS):
        raise ValueError(
            f"model.preset={shown(preset)} is not known; the presets are {', '.join(PRESETS)}"
        )
    return PRESETS[preset] | {key: value for key, value in values.items() if key != "preset"}


def _check_keys(place: str, values: Iterable[object], known: Mapping[str, Any]) -> None:
    for key in values:
        if key not in known:
            raise ValueError(
                f"{place} has an unknown key {shown(key)}; known are {', '.join(known)}"
            )


def _typed(hint: Any, name: str, value: object) -> object:
    """`value` as the type hint wants it.

    A whole number may stand for a float, and so may 1e-6, which is a text to YAML 1.1.
    """
    if dataclasses.is_dataclass(hint):
        return _section(typing.cast(type, hint), name, value)
    kinds = typing.get_args(hint) if typing.get_origin(hint) in UNIONS else (hint,)
    for kind in kinds:
        if typing.get_origin(kind) is Literal:
            choices = typing.get_args(kind)
            _require(
                value in choices or (value is None and type(None) in kinds),
                name,
                value,
                f"must be one of {', '.join(choices)}",
            )
            return value
        if kind is float and _is_number(value):
            return float(typing.cast(float, value))
        if kind == list[str] and _is_list_of_texts(value):
            return value
        if kind == list[Any] and isinstance(value, list):
            return value
        if type(value) is kind:
            return value
    wanted = " or ".join(NAMES_OF_TYPES[kind] for kind in kinds)
    raise ValueError(f"{name}={shown(value)} must be {wanted}")


def _is_number(value: object) -> bool:
    """Whether it is a number that a float can hold, or a text such as 1e-6."""
    if isinstance(value, str):
        return re.fullmatch(r"[-+]?\d{1,9}e[-+]?\d{1,9}", value) is not None
    if type(value) is int:
        return value.bit_length() < 1024
    return type(value) is float


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _range(low: float, high: float) -> str:
    """Return the rule for a number between two limits."""
    if high == ALMOST_ONE:
        return f"must be at least {low:g} and below 1"
    return f"must be from {low:,} to {high:,}"


def _require(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise ValueError(f"{name}={shown(value)} {rule}")
