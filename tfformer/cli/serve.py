"""The verb `serve`."""

from __future__ import annotations

import click

from tfformer.cli.options import TEXT_FILE, examples


@click.command(
    epilog=examples(
        "tfformer serve runs/mine --port 8501",
        "tfformer serve en-de=runs/mine de-en=models/back",
    )
)
@click.argument("models", nargs=-1, required=True, metavar="[NAME=]RUN_OR_EXPORT...")
@click.option("--host", default="127.0.0.1", metavar="H", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8501, metavar="P", help="Port.")
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Host name under which browsers may reach the server, such as a proxy's; may be repeated.",
)
@click.option(
    "--api-keys",
    type=TEXT_FILE,
    metavar="F",
    help="File of API keys, one per line; each translation request must send one.",
)
def serve(
    models: tuple[str, ...], host: str, port: int, allow_host: tuple[str, ...], api_keys: str | None
) -> None:
    """Serve runs or exports with a web page and three APIs.

    The APIs are those of TensorFlow Serving, LibreTranslate and DeepL. Each model is a run
    directory or a SavedModel, LiteRT or CTranslate2 export. With several models, name each:
    en-de=runs/a de-en=models/b.
    """
    from tfformer.serving.server import serve as serve_models

    serve_models(models, host, port, allowed_hosts=allow_host, api_keys=api_keys)
