"""Recipes, from and to YAML and JSON. Imports no TensorFlow."""

from tfformer.config.corpora import (
    SELF_CONTAINED,
    TSV,
    Corpus,
    corpora_of,
)
from tfformer.config.dialect import (
    DIALECTS,
    Dialect,
    LengthNormalization,
    PositionLayout,
    PositionTimescale,
)
from tfformer.config.reading import (
    builtin_recipes,
    find_recipe,
    parse_yaml,
    read_recipe,
)
from tfformer.config.recipe import (
    LARGEST_SEED,
    PRESETS,
    Activation,
    Architecture,
    AugmentConfig,
    Config,
    DataConfig,
    DecodingConfig,
    ModelConfig,
    ModelType,
    Norm,
    Normalization,
    TieEmbeddings,
    TokenizerConfig,
    TrainingConfig,
)

__all__ = [
    "DIALECTS",
    "LARGEST_SEED",
    "PRESETS",
    "SELF_CONTAINED",
    "TSV",
    "Activation",
    "Architecture",
    "AugmentConfig",
    "Config",
    "Corpus",
    "DataConfig",
    "DecodingConfig",
    "Dialect",
    "LengthNormalization",
    "ModelConfig",
    "ModelType",
    "Norm",
    "Normalization",
    "PositionLayout",
    "PositionTimescale",
    "TieEmbeddings",
    "TokenizerConfig",
    "TrainingConfig",
    "builtin_recipes",
    "corpora_of",
    "find_recipe",
    "parse_yaml",
    "read_recipe",
]
