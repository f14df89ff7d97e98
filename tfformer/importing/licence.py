"""Find the licence that a checkpoint's folder states."""

import re
from pathlib import Path

NOT_STATED = "not stated; ask where the model is from"


def licence(folder: Path) -> str:
    """Return the licence of a model.

    Args:
        folder: The checkpoint's folder; its README.md may begin with `license: NAME` between lines
            of three dashes, as on the Hugging Face hub, and it may have a file LICENSE.

    Returns:
        The licence's name, the first line of its text, or a sentence that there is none.
    """
    card = folder / "README.md"
    if card.is_file():
        head = card.read_bytes()[:10_000].decode("utf-8", "replace")
        stated = re.search(r"^licen[cs]e:\s*[\"']?([\w .+-]+)", head, re.MULTILINE)
        if head.startswith("---") and stated:
            return stated[1].strip()
    for name in ("LICENSE", "LICENSE.txt", "LICENCE", "COPYING"):
        if (folder / name).is_file():
            text = (folder / name).read_bytes()[:10_000].decode("utf-8", "replace")
            return next((line.strip() for line in text.splitlines() if line.strip()), NOT_STATED)
    return NOT_STATED
