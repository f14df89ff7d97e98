"""`python -m tfformer` is the command `tfformer`."""

import sys

from tfformer.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
