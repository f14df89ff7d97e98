"""A process that has loaded TensorFlow, and forks for each command line.

LD_PRELOAD=shim.so python fork_server.py reads a line of JSON for each command, with `arguments`,
`folder`, `number`, `kind` (see fault_shim.c), `output` (the file of both streams) and `seconds`. It
answers with a line that contains `code` (of the child; -9 if killed, null after the time limit) and
`operations`. For each stop of the child, a line `null` precedes it, and a line of input continues
the child.
"""

import ctypes
import functools
import json
import os
import signal
import sys
from typing import Any, TextIO


@functools.cache
def shim() -> ctypes.CDLL:
    """The preloaded library."""
    library = ctypes.CDLL(None)
    library.fault_count.restype = ctypes.c_long
    return library


def main() -> None:
    """Answer until the input ends."""
    import tfformer.cli.main
    import tfformer.training.train  # noqa: F401

    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), answers)), file=answers)


def answer(asked: dict[str, Any], answers: TextIO) -> dict[str, Any]:
    """Run one command line in a child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os._exit(run(asked, writer))
    os.close(writer)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(asked["seconds"])
    while os.WIFSTOPPED(status := os.waitpid(child, os.WUNTRACED)[1]):
        print(json.dumps(None), file=answers)
        sys.stdin.readline()
        os.kill(child, signal.SIGCONT)
    is_in_time = signal.alarm(0) > 0
    with os.fdopen(reader) as counted:
        operations = int(counted.read() or 0)
    return {
        "code": os.waitstatus_to_exitcode(status) if is_in_time else None,
        "operations": operations,
    }


def run(asked: dict[str, Any], counter: int) -> int:
    """Run the child, with its streams in a file and its operations counted."""
    import tensorflow as tf

    from tfformer.cli.main import main

    if "FAULTS_TABLE" not in os.environ:  # as tests/support/nightly.py
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
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
