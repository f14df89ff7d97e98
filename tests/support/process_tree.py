"""The descendants of a process, read from /proc."""

from pathlib import Path


def descendants(process: int) -> dict[int, str]:
    """Return process id -> command line."""
    command_lines: dict[int, str] = {}
    waiting = [process]
    while waiting:
        for number in children(waiting.pop()):
            waiting.append(number)
            command_lines[number] = command_line(number)
    return command_lines


def children(process: int) -> list[int]:
    """Return the ids of the child processes that a process's threads have started."""
    numbers = []
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            numbers += map(int, thread.read_text().split())
        except OSError:  # the thread has just ended
            continue
    return numbers


def command_line(process: int) -> str:
    """Return a process's command line; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""
