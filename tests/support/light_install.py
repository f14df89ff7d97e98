"""The command line in a process that refuses to import TensorFlow, as if it were not installed."""

import subprocess
import sys

PROGRAM = """
import sys
from importlib.abc import MetaPathFinder

MISSING = {"tensorflow", "tensorflow_text", "keras", "h5py", "yaml", "safetensors", "sacrebleu"}

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
from tfformer.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def light(*arguments, text: str = "") -> subprocess.CompletedProcess:
    """Run `tfformer ARGUMENTS` with a text in standard input."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, encoding="utf-8", timeout=120)
