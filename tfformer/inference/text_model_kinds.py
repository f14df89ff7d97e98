"""The kinds of text models, by the architecture in the recipe."""

from collections.abc import Mapping

from tfformer.config import Architecture
from tfformer.inference.generator import Generator
from tfformer.inference.text_model import TextModel
from tfformer.inference.translator import Translator

TEXT_MODELS: Mapping[Architecture, type[TextModel]] = {
    kind.architecture: kind for kind in (Translator, Generator)
}
