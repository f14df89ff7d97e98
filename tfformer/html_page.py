"""A page that contains its data as JSON in a script element."""

import json
from pathlib import Path

DATA_PLACEHOLDER = "{data}"  # in a page's <script type="application/json">


def fill_page(template: Path, data: object) -> str:
    r"""Return a page with its data in place of `{data}`.

    The template contains `{data}` once; the data is any value that JSON can represent. "<" is
    escaped, so no text in the data can end the script element or begin a comment in it.
    """
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return template.read_text(encoding="utf-8").replace(DATA_PLACEHOLDER, text, 1)
