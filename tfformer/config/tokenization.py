"""The allowed values of two tokenizer settings.

They are not in `recipe.py` because translation needs them and must not import pydantic.
"""

from typing import Literal

ModelType = Literal["unigram", "bpe"]
Normalization = Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity", "nmt_nfkc_plain"]
