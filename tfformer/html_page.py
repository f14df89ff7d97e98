"""A page that carries its data, as JSON within a script element."""

import json
from pathlib import Path

DATA_PLACE = "{data}"  # in a page's <script type="application/json">


def fill_page(template: Path, data: object) -> str:
    r"""Return a page with its data in place of `{data}`.

    No text of the data can end the script element, or begin a comment in it: "<" is escaped.

    Args:
        template: The .html file, with `{data}` once.
        data: Any value that JSON can hold.

    Returns:
        The page's text.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     template = Path(folder, "page.html")
        ...     _ = template.write_text('<script type="application/json">{data}</script>')
        ...     print(fill_page(template, ["</script>"]))
        <script type="application/json">["\u003c/script>"]</script>
    """
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return template.read_text(encoding="utf-8").replace(DATA_PLACE, text, 1)
