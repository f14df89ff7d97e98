"""What a type checker sees of the public names. Mypy reads this file, and nothing imports it.

An unused `type: ignore` is an error, so each line with one must be refused.
"""
# ruff: noqa: B018, F403, F405

from typing import assert_type

import tfformer
from tfformer import *
from tfformer.config import Config as ConfigInItsRoom


def names() -> None:
    assert_type(tfformer.Translator.load("run").translate(["A dog."]), list[str])
    assert_type(tfformer.Config.from_dict({}), ConfigInItsRoom)
    assert_type(Translator.load("run"), tfformer.Translator)
    tfformer.SmoothedCrossEntropy(reduction=None)
    tfformer.padding_mask()  # type: ignore[call-arg]
    export_model()  # type: ignore[call-arg]
    tfformer.Transfomer  # type: ignore[attr-defined]
