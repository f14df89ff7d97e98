"""The parts of the server that a request's handler finds in its application."""

import asyncio

from aiohttp import web

from tfformer.serving.api_keys import ApiKeys
from tfformer.serving.browser_guard import HostGuard
from tfformer.serving.languages import Directions
from tfformer.serving.lifecycle import Lifecycle
from tfformer.serving.metrics import Metrics
from tfformer.serving.model import ServedModels
from tfformer.serving.request_queue import RequestQueue
from tfformer.serving.translations import Translations
from tfformer.serving.usage import Usage

MODELS = web.AppKey("models", ServedModels)
QUEUE = web.AppKey("queue", RequestQueue)
GUARD = web.AppKey("guard", HostGuard)
LIFECYCLE = web.AppKey("lifecycle", Lifecycle)
METRICS = web.AppKey("metrics", Metrics)
API_KEYS = web.AppKey("api_keys", ApiKeys)
DIRECTIONS = web.AppKey("directions", Directions)
TRANSLATIONS = web.AppKey("translations", Translations)
USAGE = web.AppKey("usage", Usage)
BUSY: web.AppKey[set[asyncio.BaseProtocol]] = web.AppKey("busy", set)  # with a request under way
