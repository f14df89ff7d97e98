"""The routes for those who watch the server."""

from aiohttp import web

from tfformer.serving.application_keys import LIFECYCLE, METRICS
from tfformer.serving.metrics import CONTENT_TYPE

WATCHED = ("/healthz", "/health", "/readyz", "/metrics")  # answered even while the server drains


def add_routes(app: web.Application) -> None:
    """Add the routes of health and readiness.

    A server listens once its models are loaded, so it is ready from then on.
    """
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/health", _healthz)
    app.router.add_get("/readyz", _readyz)
    app.router.add_get("/metrics", _metrics)


async def _healthz(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


async def _readyz(request: web.Request) -> web.Response:
    if request.app[LIFECYCLE].is_draining:
        return web.json_response({"status": "draining"}, status=503)
    return web.json_response({"status": "ok"})


async def _metrics(request: web.Request) -> web.Response:
    text = request.app[METRICS].text()
    return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})
