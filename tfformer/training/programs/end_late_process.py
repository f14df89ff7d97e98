"""A program that ends another process which takes too long.

    python -P end_late_process.py SECONDS MESSAGE PROCESS

It waits for the end of its standard input. If that does not come in time, it prints the message on
standard error and kills the process. It is a process of its own because TensorFlow's servers hold
Python's lock while they start.
"""

import os
import select
import signal
import sys


def main(seconds: str, message: str, process: str) -> None:
    """Wait for the end of standard input, or kill the process."""
    ended, _, _ = select.select([sys.stdin], [], [], float(seconds))
    if not ended:
        print(message, file=sys.stderr)
        os.kill(int(process), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
