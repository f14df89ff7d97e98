"""A program that kills another process if it takes too long.

    python -P end_late_process.py SECONDS MESSAGE PROCESS

It waits until its standard input is closed. If that takes too long, it prints the message to
standard error and kills the process. It is a separate process because TensorFlow's servers hold the
GIL while they start.
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
