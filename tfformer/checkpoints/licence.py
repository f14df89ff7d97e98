"""Find the licence that a checkpoint's folder states."""

import re
from pathlib import Path

from tfformer.config import parse_yaml

NOT_STATED = "not stated; ask where the model is from"
HEAD = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
LONGEST = 100_000  # characters that are looked at


def licence(folder: Path) -> str:
    """Return the licence of a model.

    Args:
        folder: The checkpoint's folder; its README.md may begin with YAML between lines of three
            dashes, which names a `license`, as on the Hugging Face hub, and it may have a file
            LICENSE.

    Returns:
        The licence's name or several with commas, the first line of its text, or a sentence that
        there is none.
    """
    card = folder / "README.md"
    if card.is_file() and (stated := _of_card(card)):
        return stated
    for name in ("LICENSE", "LICENSE.txt", "LICENCE", "COPYING"):
        if (folder / name).is_file():
            lines = _beginning(folder / name).splitlines()
            return next((line.strip() for line in lines if line.strip()), NOT_STATED)
    return NOT_STATED


def _of_card(path: Path) -> str:
    """Return the licence in the head of a model card; an empty text if there is none.

    One that is none of the hub's list is "other", and has its name beside that.
    """
    head = HEAD.match(_beginning(path))
    try:
        values = parse_yaml(head[1], str(path)) if head else None
    except ValueError:  # a card decides nothing else
        return ""
    if not isinstance(values, dict):
        return ""
    stated = values.get("license", values.get("licence"))
    if stated == "other":
        stated = values.get("license_name", stated)
    names = stated if isinstance(stated, list) else [stated]
    return ", ".join(name.strip() for name in names if isinstance(name, str))


def _beginning(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return file.read(LONGEST)
