"""Export a run as an artifact for other software: write, read back, compare, publish.

The entry point is `pipeline.export_model`. To add a format, write its module or folder and list it
in `FORMATS`. The class of a format does not import TensorFlow, because the command line checks
options before loading it.
"""

import dataclasses
from collections.abc import Mapping

from tfformer.argument_checks import require
from tfformer.export.ctranslate2 import CTranslate2
from tfformer.export.format import Format
from tfformer.export.litert import LiteRT
from tfformer.export.saved_model import SavedModel
from tfformer.export.web import WebPage

FORMATS: Mapping[str, type[Format]] = {
    "saved_model": SavedModel,
    "ctranslate2": CTranslate2,
    "litert": LiteRT,
    "web": WebPage,
}
CHECKPOINTS: Mapping[str, list[str]] = {  # written by `tfformer.checkpoints` -> its options
    "hugging_face": [],
    "marian": ["quantize", "samples"],  # the samples are for int8
}
NAMES = (*FORMATS, *CHECKPOINTS)


def options_of(name: str) -> list[str]:
    """Return the names of the options of a format."""
    if name in CHECKPOINTS:
        return CHECKPOINTS[name]
    return [field.name for field in dataclasses.fields(FORMATS[name]) if field.init]


def check_options(name: str, given: Mapping[str, object]) -> None:
    """Raise ValueError for an unknown format, or an unknown option or type of weights of it."""
    require("format", name, NAMES)
    known = options_of(name)
    for option in given:
        if option not in known:
            raise ValueError(
                f"format={name!r} has no option {option!r}; its options are "
                f"{', '.join(known) or 'none'}"
            )
    if name == "marian":
        quantize = require("quantize", str(given.get("quantize", "none")), ("none", "int8"))
        if quantize == "none" and given.get("samples") is not None:
            raise ValueError(
                "format='marian' uses samples only with quantize='int8'; leave them out, or add it"
            )
