"""Recipes: everything that determines the result of a run, as frozen pydantic models."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from tfformer.config.corpora import corpora_of
from tfformer.config.dialect import Dialect
from tfformer.config.section import Section
from tfformer.special_ids import PLACEHOLDER, TAG

# student-tiny, student-base: sizes of Firefox's models, whose decoders have recurrent units.
STUDENT: dict[str, Any] = {"num_decoder_layers": 2, "decoder": "ssru", "norm": "pre"}
# base, big: Vaswani et al. 2017, table 3; tiny, small: our own; the recipe sets their dropout.
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"num_layers": 4, "d_model": 128, "num_heads": 4, "d_ff": 256, "norm": "pre"},
    "small": {"num_layers": 6, "d_model": 256, "num_heads": 4, "d_ff": 1024, "norm": "pre"},
    "base": {"num_layers": 6, "d_model": 512, "num_heads": 8, "d_ff": 2048, "dropout": 0.1},
    "big": {"num_layers": 6, "d_model": 1024, "num_heads": 16, "d_ff": 4096, "dropout": 0.3},
    "student-tiny": STUDENT | {"num_layers": 6, "d_model": 256, "num_heads": 8, "d_ff": 1280},
    "student-base": STUDENT | {"num_layers": 6, "d_model": 384, "num_heads": 8, "d_ff": 1536},
}
# How tiny, small and students train, unless a recipe names another optimizer or schedule.
TRAINING_OF_SMALL_PRESETS: dict[str, Any] = {
    "optimizer": "muon",
    "weight_decay": 0.1,
    "schedule": "linear",
    "learning_rate": 0.01,
    "warmup_steps": 100,
}


Activation = Literal["relu", "gelu", "swish"]
Architecture = Literal["encoder-decoder", "decoder"]
DecoderKind = Literal["attention", "ssru"]
ModelType = Literal["unigram", "bpe"]
Norm = Literal["post", "pre", "marian"]
Normalization = Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity", "nmt_nfkc_plain"]
TieEmbeddings = Literal["none", "output", "input", "all"]
BleuTokenizer = Literal[
    "auto", "13a", "intl", "char", "zh", "ja-mecab", "ko-mecab", "flores101", "flores200", "none"
]

LARGEST_SEED = 2**31 - 1
MOST = 10**9  # limit for counts, so that a typing error is caught before memory runs out


class ModelConfig(Section):
    """The model: the arguments of `tfformer.Transformer` except its vocabulary sizes.

    The vocabulary sizes come from the tokenizers. With `architecture: decoder`, the arguments are
    those of `tfformer.LanguageModel`, which has no source. The defaults are the base model of
    Vaswani et al. 2017, table 3. `preset` names a known size; other keys override its values.
    """

    architecture: Architecture = "encoder-decoder"  # decoder: a language model
    num_layers: int = Field(6, ge=1, le=1000)  # encoder layers; also decoder layers by default
    # A shallow decoder is faster: the search runs the decoder once per token.
    num_decoder_layers: int | None = Field(None, ge=1, le=1000)
    # How the decoder reads the target: attention; ssru, recurrent units (Kim et al. 2019), which
    # take the same time at each position.
    decoder: DecoderKind = "attention"
    d_model: int = Field(512, ge=2, le=10**6)  # width of embeddings and layers; an even number
    num_heads: int = Field(8, ge=1, le=10**6)  # per attention; must divide d_model
    d_ff: int = Field(2048, ge=1, le=10**6)  # width within the feed-forward layers; often 4 d_model
    dropout: float = Field(0.1, ge=0, lt=1)  # share of values; 0.3 suits small corpora
    activation: Activation = "relu"  # in the feed-forward layers
    # Where layers normalise: post, after each residual sum (the paper); pre, before each sub-layer,
    # which trains without a long warmup; marian, pre as marian-decoder computes it.
    norm: Norm = "post"
    # Embeddings that share a matrix. output: target, output; input: source, target; all: all three.
    tie_embeddings: TieEmbeddings = "all"
    use_bias: bool = True  # in the projections of the attentions
    dialect: Dialect = Dialect()  # paper, marian, m2m100, or the fields that differ from the paper

    @property
    def has_encoder(self) -> bool:
        """Whether the model reads a source: a translator does, a language model does not."""
        return self.architecture == "encoder-decoder"

    @model_validator(mode="before")
    @classmethod
    def _expand_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "preset" not in values:
            return values
        preset = values["preset"]
        if not isinstance(preset, str) or preset not in PRESETS:
            raise ValueError(
                f"model.preset={preset!r} is not known; the presets are {', '.join(PRESETS)}"
            )
        changes = {key: value for key, value in values.items() if key != "preset"}
        if preset.startswith("student") and changes.get("decoder", "ssru") != "ssru":
            raise ValueError(
                f"model.decoder={changes['decoder']!r} contradicts model.preset={preset!r}, whose "
                "decoder is ssru; leave out one of them"
            )
        return PRESETS[preset] | changes

    @model_validator(mode="after")
    def _check_widths(self) -> Self:
        if self.d_model % 2:
            raise ValueError(f"model.d_model={self.d_model} must be even")
        if self.d_model % self.num_heads:
            raise ValueError(
                f"model.d_model={self.d_model} must be divisible by "
                f"model.num_heads={self.num_heads}"
            )
        if self.d_model % (self.dialect.num_decoder_heads or 1):
            raise ValueError(
                f"model.d_model={self.d_model} must be divisible by "
                f"model.dialect.num_decoder_heads={self.dialect.num_decoder_heads}"
            )
        return self

    @model_validator(mode="after")
    def _check_language_model(self) -> Self:
        if self.has_encoder:
            return self
        dialect = self.dialect
        needs_encoder = dialect.zero_start or dialect.num_decoder_heads or dialect.decoder_d_ff
        refused = (
            (self.num_decoder_layers is not None, "num_decoder_layers", "set num_layers"),
            (self.decoder != "attention", "decoder", "leave it out"),
            (self.norm == "marian", "norm", "choose post or pre"),
            (needs_encoder, "dialect", "leave it out"),
        )
        for is_set, key, remedy in refused:
            if is_set:
                raise ValueError(
                    f"model.{key}={self.to_dict()[key]!r} needs an encoder; with "
                    f"model.architecture=decoder {remedy}"
                )
        return self


class TokenizerConfig(Section):
    """The SentencePiece vocabulary, which is trained on the training text."""

    vocab_size: int = Field(8000, ge=5, le=MOST)  # pieces per vocabulary, with the special ones
    model_type: ModelType = "unigram"  # Kudo 2018; bpe: Sennrich et al. 2016
    shared: bool = True  # one vocabulary for both languages
    # nmt_nfkc: NFKC, and control characters become spaces; nfkc keeps control characters; *_cf also
    # folds case; nmt_nfkc_plain also makes curly quotes straight and drops soft hyphens; identity
    # changes nothing. NFKC replaces no-break spaces, "…" and full-width punctuation.
    normalization: Normalization = "nmt_nfkc"
    target_normalization: Normalization | None = None  # for the target vocabulary; None: the same
    character_coverage: float = Field(1.0, ge=0.98, le=1)  # share of characters; 0.9995 for Chinese
    symbols: list[str] = []  # never divided into pieces; [⟦1⟧, ⟦2⟧] are placeholders
    byte_fallback: bool = False  # writes unknown characters as bytes; uses 256 of the pieces
    # Adds each piece Capitalised and IN CAPITALS to vocab_size. The variants of a piece share an
    # embedding except for one vector per case, so the text needs few capitals.
    case_variants: bool = False

    @property
    def placeholders(self) -> list[str]:
        """The symbols that may stand for words."""
        return [symbol for symbol in self.symbols if PLACEHOLDER.fullmatch(symbol)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.target_normalization is not None and self.shared:
            raise ValueError(
                f"tokenizer.target_normalization={self.target_normalization!r} needs a target "
                "vocabulary; set tokenizer.shared=false"
            )
        if self.case_variants and self.model_type != "unigram":
            raise ValueError(
                f"tokenizer.model_type={self.model_type!r} has no merges for "
                "tokenizer.case_variants; set it to unigram"
            )
        return self


class AugmentConfig(Section):
    """Shares of the training text that are repeated with a change.

    The unchanged text always remains, so an epoch becomes longer by these shares. The vocabulary is
    trained on the changed text too.
    """

    upper: float = Field(0.0, ge=0, le=1)  # both sides IN CAPITALS
    title: float = Field(0.0, ge=0, le=1)  # both sides With Capital Initials
    lower: float = Field(0.0, ge=0, le=1)  # both sides in lower case
    typos: float = Field(0.0, ge=0, le=1)  # one typing error in the source
    placeholders: float = Field(0.0, ge=0, le=1)  # ⟦1⟧ in place of, or before, words on both sides


class DataConfig(Section):
    """Where the text comes from, and how it becomes batches.

    `train` and `valid` each name a pair of text files, and perhaps a third with the links between
    their words; or one TSV file, `tfds:NAME` or `phrasebook:SPLIT`; for a language model, one text
    file. `*` in a file name stands for many files. A list of these is several corpora, and `{text:
    ..., weight: ...}` sets the share of a corpus in an epoch. `{text: ..., tag: <de>, languages:
    [en, de]}` puts a tag before each source.
    """

    train: str | list[Any] = ""  # the training text
    valid: str | list[Any] = ""  # the validation text; its scores decide which weights are best
    folder: str = "."  # the folder that relative paths in train and valid start from
    temperature: float | None = Field(None, ge=1, le=1000)  # shares by size^(1/T); 5 is usual
    cache: str | None = None  # a folder for the encoded training text, which is then memory-mapped
    languages: list[str] | None = None  # [en, de]; for TFDS columns, BLEU's tokenizer, segmenting
    tags: list[str] = []  # symbols before sources, such as <de> or <du>; never divided into pieces
    max_length: int = Field(128, ge=2, le=MOST)  # tokens per sentence, including the end token
    # Tokens per side, including padding; the paper uses 25,000. None: 24,576 on a GPU, 4,096 on a
    # processor.
    batch_tokens: int | None = Field(None, ge=2, le=MOST)
    augment: AugmentConfig = AugmentConfig()

    @property
    def directions(self) -> list[tuple[str, ...]]:
        """The source and target languages of the corpora whose tag names the target."""
        pairs = [
            corpus.languages
            for corpus in corpora_of(self.train)
            if corpus.languages is not None and corpus.tag == f"<{corpus.languages[1]}>"
        ]
        return list(dict.fromkeys(pairs))

    @field_validator("train", "valid", mode="before")
    @classmethod
    def _check_source(cls, source: Any, info: Any) -> Any:
        setting = f"data.{info.field_name}"
        weights = [corpus.weight for corpus in corpora_of(source, setting)]
        if 0 < weights.count(None) < len(weights):
            raise ValueError(f"{setting} must give a weight for every corpus or for none")
        return [source] if isinstance(source, dict) else source

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.temperature is not None and corpora_of(self.train)[0].weight is not None:
            raise ValueError(
                f"data.temperature={self.temperature} sets the shares of the corpora; leave out "
                "the weights in data.train"
            )
        if any(corpus.weight is not None for corpus in corpora_of(self.valid, "data.valid")):
            raise ValueError("data.valid is always used in full; leave out its weights")
        for tag in self.tags:
            if not TAG.fullmatch(tag):
                raise ValueError(
                    f"data.tags has {tag!r}; write a tag without spaces in angle brackets, such as "
                    "<de>"
                )
        for setting, source in (("data.train", self.train), ("data.valid", self.valid)):
            for corpus in corpora_of(source, setting):
                if corpus.tag and corpus.tag not in self.tags:
                    raise ValueError(
                        f"{setting} has the tag {corpus.tag!r}, which is not in data.tags "
                        f"({', '.join(self.tags) or 'empty'}); add it there, or correct it"
                    )
        if self.batch_tokens is not None and self.max_length > self.batch_tokens:
            raise ValueError(
                f"data.batch_tokens={self.batch_tokens} must hold one sentence of "
                f"data.max_length={self.max_length} tokens"
            )
        return self


class SimCutConfig(Section):
    """SimCut (Gao et al. 2022): predictions must be the same when some tokens are cut.

    Each row is computed twice: a step takes twice the memory and 2.2 times the time.
    """

    alpha: float = Field(0.0, ge=0, le=1000)  # weight of the divergence; 0: none; the paper's is 3
    cutoff: float = Field(0.05, ge=0, lt=1)  # share of the tokens on both sides


class TrainingConfig(Section):
    """Optimizer, schedule, precision and validation.

    `patience` counts validations without a better score: BLEU, then chrF if BLEU is equal; for a
    language model, bits per byte. Validation counts towards `max_minutes`. With `dtype`
    mixed_bfloat16 or mixed_float16, validation also computes in this precision; translating,
    scoring and exporting compute in float32, so their scores differ slightly.
    """

    epochs: int = Field(20, ge=1, le=MOST)  # passes over the text, or units of epoch_steps updates
    # Useful when a pass takes hours, because a run can be resumed only from the end of an epoch.
    epoch_steps: int | None = Field(None, ge=1, le=MOST)
    max_minutes: float | None = Field(None, gt=0, le=MOST)  # wall clock, summed over resumed parts
    seed: int = Field(1, ge=0, le=LARGEST_SEED)  # of weights, dropout and batch order
    optimizer: Literal["adam", "adamw", "muon"] = "adam"  # section 5.3; muon often needs less time
    weight_decay: float = Field(0.0, ge=0, le=1)  # for matrices, per update, multiplied by the rate
    # warmup: equation 3; inverse_sqrt: the same with learning_rate as its peak; linear: from
    # learning_rate to 0 at the end of training.
    schedule: Literal["warmup", "inverse_sqrt", "linear"] = "warmup"
    learning_rate: float | None = Field(None, ge=0, le=1000)  # the peak; warmup computes its own
    warmup_steps: int = Field(4000, ge=1, le=MOST)  # updates while the rate rises; section 5.3
    label_smoothing: float = Field(0.1, ge=0, lt=1)  # section 5.4
    simcut: SimCutConfig = SimCutConfig()  # {alpha: 3.0} as published; no SimCut by default
    # Weight of the loss that trains a head to align words (Garg et al. 2019: 0.05); 0: none.
    guided_alignment: float = Field(0.0, ge=0, le=1000)
    clip_norm: float | None = Field(None, gt=0, le=MOST)  # maximum norm of the gradient
    accumulate_steps: int = Field(1, ge=1, le=MOST)  # batches per update
    # Shards per batch, each on its own thread; one per core is fast. On a GPU, leave it at 1.
    shards: int = Field(1, ge=1, le=1000)
    # mirrored: all GPUs of this machine; multi_worker: the processes that TF_CONFIG names
    strategy: Literal["one_device", "mirrored", "multi_worker"] = "one_device"
    wait_minutes: float = Field(30.0, ge=0.01, le=MOST)  # limit for a worker that does not answer
    ema_momentum: float | None = Field(None, ge=0, lt=1)  # decay of averaged weights; 0.99 is usual
    validate_every: int = Field(1, ge=1, le=MOST)  # epochs; the last epoch is always validated
    bleu_tokenizer: BleuTokenizer = "auto"  # sacreBLEU's; auto: from the target language
    patience: int | None = Field(None, ge=1, le=MOST)  # validations; None: train all epochs
    # Precision. auto: mixed_bfloat16 on a GPU that supports bfloat16, otherwise float32.
    dtype: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = "auto"
    # Compile with XLA and pack rows into one shape. auto: on a GPU, not on a CPU.
    jit_compile: Literal["auto", True, False] = "auto"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.schedule == "warmup" and self.learning_rate is not None:
            raise ValueError(
                f"training.learning_rate={self.learning_rate} is the peak of "
                "training.schedule=inverse_sqrt or linear; leave it out with warmup"
            )
        if self.schedule != "warmup" and self.learning_rate is None:
            raise ValueError(
                f"training.schedule={self.schedule!r} needs training.learning_rate, its peak, for "
                "example 0.001"
            )
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError(
                f"training.weight_decay={self.weight_decay} needs training.optimizer=adamw or muon"
            )
        return self


class DecodingConfig(Section):
    """The default search. `model.dialect` sets further details of it."""

    beam_size: int = Field(4, ge=1, le=1000)  # hypotheses per sentence; section 6.1; 1 is greedy
    length_penalty: float = Field(0.6, ge=0, le=100)  # alpha of Wu et al. 2016, equation 14


class Config(Section):
    """A recipe: everything that decides the result of a run.

    Attributes:
        model: The size and the form of the model.
        tokenizer: The vocabulary.
        data: The text, and how it becomes batches.
        training: Optimizer, schedule, precision, validation.
        decoding: The default search.

    Example:
        >>> import tfformer
        >>> config = tfformer.Config.from_dict({"training": {"epochs": 3}})
        >>> config.training.epochs, config.decoding.beam_size
        (3, 4)
        >>> tfformer.Config.from_dict({"training": {"epochs": 0}})
        Traceback (most recent call last):
            ...
        ValueError: training.epochs=0 must be at least 1
    """

    model: ModelConfig = ModelConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    data: DataConfig = DataConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, values: Any) -> Any:
        """Leave out empty sections, which are null in YAML, and train small presets as usual."""
        if not isinstance(values, dict):
            return values
        sections = {name: section for name, section in values.items() if section is not None}
        match sections.get("model"), sections.get("training", {}):
            case {"preset": "tiny" | "small" | "student-tiny" | "student-base"}, {**stated}:
                is_muon = stated.get("optimizer", "muon") == "muon"
                if is_muon and stated.get("schedule", "linear") == "linear":
                    sections["training"] = TRAINING_OF_SMALL_PRESETS | stated
        return sections

    @model_validator(mode="after")
    def _check_vocabularies(self) -> Self:
        if not self.model.has_encoder and not self.tokenizer.shared:
            raise ValueError(
                "tokenizer.shared=False needs two languages; with model.architecture=decoder there "
                "is one vocabulary"
            )
        if self.model.tie_embeddings in ("all", "input") and not self.tokenizer.shared:
            raise ValueError(
                f"model.tie_embeddings={self.model.tie_embeddings!r} needs one vocabulary; set "
                "tokenizer.shared=true or model.tie_embeddings=output"
            )
        if self.data.augment.placeholders and not self.tokenizer.placeholders:
            raise ValueError(
                f"data.augment.placeholders={self.data.augment.placeholders} needs symbols that "
                "stand for words; set tokenizer.symbols, for example [⟦1⟧, ⟦2⟧]"
            )
        return self

    @model_validator(mode="after")
    def _check_architecture(self) -> Self:
        languages = self.data.languages
        if self.model.has_encoder and languages is not None and len(languages) != 2:
            raise ValueError(
                f"data.languages={languages} must name source and target, for example [en, de]"
            )
        needs_source = {
            "data.tags": self.data.tags,
            "data.augment.typos": self.data.augment.typos,
            "data.augment.placeholders": self.data.augment.placeholders,
            "training.simcut.alpha": self.training.simcut.alpha,
            "training.guided_alignment": self.training.guided_alignment,
        }
        for key, value in needs_source.items():
            if value and not self.model.has_encoder:
                raise ValueError(
                    f"{key}={value} needs a source; with model.architecture=decoder leave it out"
                )
        return self
