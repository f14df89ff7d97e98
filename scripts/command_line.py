"""Call the `main` of a script with the words of the command line."""

import inspect
import sys
from collections.abc import Callable


def run(main: Callable[..., None]) -> None:
    """Call `main`; `--help`, or words that do not fit its parameters, print the script's docstring.

    A mistake that the user can correct ends the script with one line.
    """
    words, usage = sys.argv[1:], sys.modules[main.__module__].__doc__
    if "--help" in words:
        print(usage)
        return
    try:
        inspect.signature(main).bind(*words)
    except TypeError:
        sys.exit(usage)
    try:
        main(*words)
    except (ValueError, OSError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
