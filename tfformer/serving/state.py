"""The state of a running server that request handlers share."""

from collections.abc import Collection
from typing import Annotated

from fastapi import Depends, Request

from tfformer.serving.languages import Directions
from tfformer.serving.request_queue import RequestQueue
from tfformer.serving.security import ApiKeys
from tfformer.serving.served_models import ServedModels
from tfformer.serving.translations import Translations


class State:
    """The data that requests share."""

    def __init__(self, models: ServedModels, keys: Collection[str] = ()) -> None:
        self.models = models
        self.queue = RequestQueue()
        self.keys = ApiKeys(keys)
        self.directions = Directions(models)
        self.translations = Translations(self.queue)
        self.characters = 0


async def _state(request: Request) -> State:
    return request.app.state.serving


Served = Annotated[State, Depends(_state)]  # a parameter of a handler
