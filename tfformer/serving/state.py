"""The parts of a running server that the handlers of requests share."""

from collections.abc import Collection, Sequence
from typing import Annotated

from fastapi import Depends, Request

from tfformer.engines import Engine
from tfformer.engines.engine import Arrays
from tfformer.serving.languages import Directions
from tfformer.serving.metrics import Metrics
from tfformer.serving.request_queue import RequestQueue
from tfformer.serving.security import ApiKeys
from tfformer.serving.served_models import ServedModels
from tfformer.serving.translations import Translations

TEXTS = ("translation", "translations", "generated_text")  # outputs that are texts


class State:
    """The data that requests share.

    Attributes:
        models: The models that answer.
        metrics: Counters for Prometheus.
        queue: The sentences that wait for a model.
        keys: The API keys.
        directions: Which model translates between which languages.
        translations: Translates sentences and whole texts.
        characters: Characters translated by DeepL's API since the start.
    """

    def __init__(self, models: ServedModels, keys: Collection[str] = ()) -> None:
        self.models = models
        self.metrics = Metrics()
        self.queue = RequestQueue(self._count_batch)
        self.keys = ApiKeys(keys)
        self.directions = Directions(models)
        self.translations = Translations(self.queue, self.metrics)
        self.characters = 0
        waiting = "Sentences that wait for a model."
        self.metrics.watch("tfformer_queue_sentences", waiting, lambda: self.queue.sentences)

    def _count_batch(
        self, version: Engine, sentences: int, answers: Sequence[Arrays], seconds: float
    ) -> None:
        tokens = sum(tokens_of(version, outputs) for outputs in answers)
        self.metrics.batch_done(self.models.name_of(version), sentences, tokens, seconds)


def tokens_of(version: Engine, outputs: Arrays) -> int:
    """Return the tokens of the best translations, or of scored texts; 0 without a tokenizer."""
    for name in ("lengths", "num_tokens"):
        if name in outputs:
            return int(outputs[name].sum())
    rows = [outputs[name] for name in TEXTS if name in outputs]
    if not rows or version.tokenizers is None:
        return 0
    best = rows[0].reshape(len(rows[0]), -1)[:, 0]
    texts = [text.decode("utf-8", "replace") for text in best]
    return sum(map(len, version.tokenizers.target.encode(texts)))


async def _state(request: Request) -> State:
    return request.app.state.serving


Served = Annotated[State, Depends(_state)]  # a parameter of a handler
