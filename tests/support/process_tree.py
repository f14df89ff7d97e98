"""The processes that a process has begun, and those that these have begun, by /proc."""

from pathlib import Path


def descendants(process: int) -> dict[int, str]:
    """Return the command line of each by its number."""
    found: dict[int, str] = {}
    waiting = [process]
    while waiting:
        for number in children(waiting.pop()):
            waiting.append(number)
            found[number] = command_line(number)
    return found


def children(process: int) -> list[int]:
    """Return the numbers of those that all threads of a process have begun."""
    found = []
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += map(int, thread.read_text().split())
        except OSError:  # it has just ended
            continue
    return found


def command_line(process: int) -> str:
    """Return a process's command line; nothing if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""
