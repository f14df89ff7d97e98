"""The ways in which a family of models computes or searches differently from the paper."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tfformer.config.section import Section
from tfformer.special_ids import START_ID

LengthNormalization = Literal["wu", "power"]
PositionLayout = Literal["interleaved", "halves"]
PositionTimescale = Literal["paper", "t2t"]
RuledScores = Literal["log_probs", "renormalized", "logits"]
SEARCH = (
    *("length_normalization", "narrowing", "early_stopping", "allow_unknown"),
    *("max_length_factor", "extra_length", "rules"),
)


class Rules(Section):
    """The rules in Transformers' generation that change the logits at each step."""

    # Positive logits of tokens in the translation are divided by it, negative logits multiplied.
    repetition_penalty: float = Field(1.0, gt=0, le=1000)
    no_repeat_ngram_size: int = Field(0, ge=0, le=10**6)  # n-grams that may occur only once; 0: off
    min_length: int = Field(0, ge=0, le=10**9)  # minimum number of tokens before the end token
    bad_words: list[list[int]] = []  # sequences of ids that a translation must not contain
    # What the rules change in the beam search: log_probs; renormalized, where the probabilities sum
    # to 1 again after the rules; or logits, as in CTranslate2.
    beam_scores: RuledScores = "log_probs"
    # The token that Transformers' decoder reads first; the repetition rules count it as part of the
    # translation.
    start_token: int = Field(START_ID, ge=0)

    @model_serializer(mode="wrap")
    def _plain(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _different(self, fields)


class Dialect(Section):
    """The details in which models from other toolkits differ from the paper.

    `model.dialect` names a known family (`paper`, `marian` or `m2m100`), or maps fields to the
    values in which a checkpoint differs from the paper. The defaults are the paper's.

    Example:
        >>> Dialect.of("m2m100").position_offset
        2
        >>> Dialect.of({"epsilon": 1e-5}).to_dict()
        {'epsilon': 1e-05}
        >>> Dialect().to_dict()
        'paper'
    """

    position_layout: PositionLayout = "interleaved"  # of sines and cosines; halves: all sines first
    # The range of wavelengths; t2t: Tensor2Tensor's.
    position_timescale: PositionTimescale = "paper"
    position_offset: int = Field(0, ge=0, le=1000)  # of the first token; M2M100 counts from 2
    scale_embedding: bool = True  # multiply embeddings by sqrt(d_model)
    zero_start: bool = False  # the start token's vector is zero, as in Marian, and not learned
    output_bias: bool = False  # the logits have a bias for each piece of the vocabulary
    epsilon: float = Field(1e-6, ge=0, le=1)  # added to the variance in layer normalisation
    num_decoder_heads: int | None = Field(None, ge=1, le=10**6)  # None: as many as the encoder's
    decoder_d_ff: int | None = Field(None, ge=1, le=10**6)  # None: the encoder's
    # How the beam search normalises scores by length. wu: equation 14 of Wu et al. 2016; power:
    # length^alpha, as in Marian and Transformers.
    length_normalization: LengthNormalization = "wu"
    narrowing: bool = False  # the beam shrinks by one each time a hypothesis ends, as in Marian
    # The search for a sentence ends as soon as there are as many finished hypotheses as beams.
    # Transformers' default (False) continues while the best beam, if it ended now, would beat the
    # worst finished hypothesis.
    early_stopping: bool = True
    allow_unknown: bool = True  # a translation may contain the unknown token; Marian's may not
    max_length_factor: float = Field(1.0, ge=0.01, le=1000)  # target tokens per source token
    extra_length: int = Field(50, ge=0, le=10**9)  # target tokens in addition to that; section 6.1
    rules: Rules = Rules()  # of Transformers' generation, which forbid or penalise tokens

    @classmethod
    def of(cls, value: "str | Mapping[str, Any] | Dialect") -> Self:
        """Return a dialect by its name or by the fields that differ from the paper."""
        return cls.from_dict(value)

    def search(self) -> dict[str, Any]:
        """Return the fields that affect only the search, not the weights."""
        return {name: getattr(self, name) for name in SEARCH} | {"rules": self.rules.to_dict()}

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        """Replace a name with the dialect of that name."""
        if not isinstance(value, str):
            return value
        if value not in DIALECTS:
            raise ValueError(
                f"the dialect {value!r} is not known; use {', '.join(DIALECTS)}, or a mapping of "
                "the fields that differ from the paper"
            )
        return dict(DIALECTS[value])

    @model_serializer(mode="wrap")
    def _plain(self, fields: SerializerFunctionWrapHandler) -> Any:
        """Return the dialect's name, or the fields that differ from the paper."""
        for name, dialect in DIALECTS.items():
            if dialect == self:
                return name
        return _different(self, fields)


def _different(section: Section, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
    """Return the plain values that differ from the defaults."""
    known = type(section).model_fields
    return {
        name: value
        for name, value in fields(section).items()
        if getattr(section, name) != known[name].default
    }


DIALECTS: dict[str, Dialect] = {
    "paper": Dialect(),
    "marian": Dialect(
        position_layout="halves",
        position_timescale="t2t",
        zero_start=True,
        output_bias=True,
        length_normalization="power",
        narrowing=True,
        allow_unknown=False,
        max_length_factor=3.0,
        extra_length=0,
    ),
    "m2m100": Dialect(
        position_layout="halves",
        position_timescale="t2t",
        position_offset=2,
        output_bias=True,
        epsilon=1e-5,
        length_normalization="power",
    ),
}
