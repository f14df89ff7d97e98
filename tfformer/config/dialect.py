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
    """The rules in Transformers' generation that change the logits at each step.

    Attributes:
        repetition_penalty: Positive logits of tokens in the translation are divided by it, negative
            logits multiplied.
        no_repeat_ngram_size: Length of the n-grams that may not occur twice in a translation; 0
            turns the rule off.
        min_length: Minimum number of tokens before the end token.
        bad_words: Sequences of ids that a translation must not contain.
        beam_scores: What the rules change in the beam search: "log_probs"; "renormalized", where
            the probabilities sum to 1 again after the rules; or "logits", as in CTranslate2.
        start_token: The token that Transformers' decoder reads first; the repetition rules count it
            as part of the translation.
    """

    repetition_penalty: float = Field(1.0, gt=0, le=1000)
    no_repeat_ngram_size: int = Field(0, ge=0, le=10**6)
    min_length: int = Field(0, ge=0, le=10**9)
    bad_words: list[list[int]] = []
    beam_scores: RuledScores = "log_probs"
    start_token: int = Field(START_ID, ge=0)

    @model_serializer(mode="wrap")
    def _plain(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _different(self, fields)


class Dialect(Section):
    """The details in which models from other toolkits differ from the paper.

    `model.dialect` names a known family (`paper`, `marian` or `m2m100`), or maps fields to the
    values in which a checkpoint differs from the paper. The defaults are the paper's.

    Attributes:
        position_layout: The order of sines and cosines: "interleaved", or all sines first in
            "halves".
        position_timescale: The range of wavelengths: "paper", or Tensor2Tensor's "t2t".
        position_offset: The position of the first token; M2M100 counts from 2.
        scale_embedding: Whether embeddings are multiplied by sqrt(d_model).
        zero_start: Whether the start token's vector is zero, as in Marian, and not learned.
        output_bias: Whether the logits have a bias for each piece of the vocabulary.
        epsilon: Added to the variance in layer normalisation.
        num_decoder_heads: Attention heads of the decoder; None for as many as the encoder's.
        decoder_d_ff: Width of the decoder's feed-forward layers; None for the encoder's.
        length_normalization: How the beam search normalises scores by length: "wu", equation 14 of
            Wu et al. 2016, or "power", length^alpha, as in Marian and Transformers.
        narrowing: Whether the beam shrinks by one each time a hypothesis ends, as in Marian.
        early_stopping: Whether the search for a sentence ends as soon as there are as many finished
            hypotheses as beams. Transformers' default (False) continues while the best beam, if it
            ended now, would beat the worst finished hypothesis.
        allow_unknown: Whether a translation may contain the unknown token; Marian's may not.
        max_length_factor: Maximum target tokens per source token.
        extra_length: Target tokens allowed in addition to that (section 6.1).
        rules: Further rules in Transformers' generation that forbid or penalise tokens.

    Example:
        >>> Dialect.of("m2m100").position_offset
        2
        >>> Dialect.of({"epsilon": 1e-5}).to_dict()
        {'epsilon': 1e-05}
        >>> Dialect().to_dict()
        'paper'
    """

    position_layout: PositionLayout = "interleaved"
    position_timescale: PositionTimescale = "paper"
    position_offset: int = Field(0, ge=0, le=1000)
    scale_embedding: bool = True
    zero_start: bool = False
    output_bias: bool = False
    epsilon: float = Field(1e-6, ge=0, le=1)
    num_decoder_heads: int | None = Field(None, ge=1, le=10**6)
    decoder_d_ff: int | None = Field(None, ge=1, le=10**6)
    length_normalization: LengthNormalization = "wu"
    narrowing: bool = False
    early_stopping: bool = True
    allow_unknown: bool = True
    max_length_factor: float = Field(1.0, ge=0.01, le=1000)
    extra_length: int = Field(50, ge=0, le=10**9)
    rules: Rules = Rules()

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
