"""Pages that contain their data as JSON in a script element, and one look."""

import json
from pathlib import Path

LOOK = Path(__file__).with_name("look.css")  # the styles that all pages share


def fill_page(template: Path, data: object) -> str:
    """Return a page with its data in place of `{data}`, and the shared styles in place of `{look}`.

    The data is any value that JSON can represent. "<" is escaped, so no text in the data can end
    the script element or begin a comment in it.
    """
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    page = template.read_text(encoding="utf-8")
    return page.replace("{look}", LOOK.read_text(encoding="utf-8"), 1).replace("{data}", text, 1)
