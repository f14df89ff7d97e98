"""The command line in a process that refuses to import TensorFlow, as if it were not installed."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys
from importlib.abc import MetaPathFinder

MISSING = {"tensorflow", "tensorflow_text", "keras", "h5py", "yaml", "safetensors", "sacrebleu"}

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
from tfformer.cli.main import main
codes = [main(words) for words in json.loads(sys.argv[1])]
assert len({*codes}) == 1, codes
sys.exit(codes[0])
"""


def light(*arguments, text: str = "") -> subprocess.CompletedProcess:
    """Run `tfformer ARGUMENTS` with a text in standard input."""
    return light_lines([list(map(str, arguments))], text)


def light_lines(lines: list[list[str]], text: str = "") -> subprocess.CompletedProcess:
    """Run `tfformer` in one process with the words of each command line, which end alike."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(lines)]
    return subprocess.run(command, input=text, capture_output=True, encoding="utf-8", timeout=120)
