"""The choices of a tokenizer, apart from the recipe: translating needs them, and no pydantic."""

from typing import Literal

ModelType = Literal["unigram", "bpe"]
Normalization = Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity", "nmt_nfkc_plain"]
