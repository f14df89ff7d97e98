"""A process that has loaded TensorFlow, and forks for each command line.

LD_PRELOAD=shim.so python fork_server.py: reads a line of JSON for each command, with `arguments`,
`folder`, `number`, `kind` (see fault_shim.c), `output` (the file of both streams) and `seconds`;
answers with a line, `code` (of the child; -9 killed, null if it had to be ended) and `operations`.
"""

import ctypes
import functools
import json
import os
import select
import signal
import sys
from typing import Any


@functools.cache
def shim() -> ctypes.CDLL:
    """The preloaded library."""
    library = ctypes.CDLL(None)
    library.fault_count.restype = ctypes.c_long
    return library


def main() -> None:
    """Answer until the input ends."""
    import tfformer.cli.verbs
    import tfformer.training.train  # noqa: F401

    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers)


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Run one command line in a child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os._exit(run(asked, writer))
    os.close(writer)
    handle = os.pidfd_open(child)
    ended = select.select([handle], [], [], asked["seconds"])[0]
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(handle)
    with os.fdopen(reader) as counted:
        operations = int(counted.read() or 0)
    return {
        "code": os.waitstatus_to_exitcode(status) if ended else None,
        "operations": operations,
    }


def run(asked: dict[str, Any], counter: int) -> int:
    """The child: its streams go to a file, its operations are counted."""
    from tfformer.cli.verbs import main

    output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    number, kind = asked["number"], asked["kind"].encode()
    shim().fault_arm(asked["folder"].encode(), ctypes.c_long(number), ctypes.c_char(kind))
    code = 1
    try:
        code = main(asked["arguments"])
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(counter, str(shim().fault_count()).encode())
    return code


if __name__ == "__main__":
    main()
