#!/usr/bin/env python
"""Writes EXPORT/models.config for TensorFlow Serving.

The file has the versions to load and their labels.

    python set_labels.py models/phrasebook stable=1
    python set_labels.py models/phrasebook stable=2 canary=2 --load 3

TensorFlow Serving reads the file again every minute. It checks the labels before it loads versions:
a label that moves to a version that is not loaded is refused, with all else in the file, at every
reading. So a rollout takes two steps, with a wait between them. This program refuses a step that
needs a version which the file of before does not name; whether the server has loaded those that it
names, the server alone knows.
"""

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

FILE = "models.config"
READABLE = 0o644  # the server may run as somebody else
LABEL = re.compile(r'key: "([^"]*)" value: (\d+)')
VERSION = re.compile(r"versions: (\d+)")


def main() -> None:
    """Write the file, or end with one line on standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("export", metavar="EXPORT", type=Path, help="the folder of the versions")
    parser.add_argument("labels", metavar="LABEL=VERSION", nargs="+", help="such as stable=1")
    parser.add_argument(
        "--load", type=int, action="append", default=[], metavar="N", help="one more, unlabelled"
    )
    parser.add_argument("--model", metavar="NAME", help="the folder's name if left out")
    options = parser.parse_args()
    path = options.export / FILE
    labels = read_labels(options.labels)
    versions = sorted({*labels.values(), *options.load})
    check_versions(options.export, versions)
    if path.exists():
        check_moves(path.read_text(encoding="utf-8"), labels)
    model = options.model or options.export.resolve().name
    if not re.fullmatch(r"[\w.-]+", model):
        raise ValueError(f"the model's name {model!r} may have letters, digits, '_', '.' and '-'")
    write_whole(path, config(model, versions, labels))
    named = ", ".join(f"{label} = {version}" for label, version in labels.items())
    print(f"{path}: versions {', '.join(map(str, versions))}; {named}")


def write_whole(path: Path, content: str) -> None:
    """Write a file whole or not at all, beside it at first, under a name that nobody can plant."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{FILE}.")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        os.chmod(temporary, READABLE)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_labels(texts: list[str]) -> dict[str, int]:
    """Return the version of each label; ValueError if one is named twice."""
    labels = dict(map(read_label, texts))
    if len(labels) < len(texts):
        raise ValueError(f"{' '.join(texts)} names a label twice; give it one version")
    return labels


def read_label(text: str) -> tuple[str, int]:
    """Return the label and the version in LABEL=VERSION.

    Another form raises ValueError.
    """
    match = re.fullmatch(r"([\w.-]+)=(\d+)", text)
    if not match:
        raise ValueError(f"{text!r} is not of the form LABEL=VERSION; give, for example, stable=1")
    return match[1], int(match[2])


def check_versions(export: Path, versions: Iterable[int]) -> None:
    """Raise ValueError if a version was not exported."""
    for version in versions:
        if not (export / str(version) / "saved_model.pb").is_file():
            raise ValueError(f"{export} has no version {version}; export it first")


def check_moves(before: str, labels: dict[str, int]) -> None:
    """Raise ValueError if TensorFlow Serving would refuse the labels.

    Args:
        before: The file that the server has read.
        labels: Label -> version, as they shall become.
    """
    loaded = {int(version) for version in VERSION.findall(before)}
    for label, version in LABEL.findall(before):
        moved = labels.get(label)
        if moved is not None and moved != int(version) and moved not in loaded:
            raise ValueError(
                f"the label {label} cannot move to version {moved}, which the server has not "
                f"loaded; first load it (--load {moved}, with {label} where it is), wait until it "
                "is AVAILABLE, then move the label"
            )


def config(model: str, versions: Iterable[int], labels: dict[str, int]) -> str:
    """Return the text of the file: a ModelServerConfig of tensorflow_serving/config."""
    loaded = "".join(f"        versions: {version}\n" for version in versions)
    labelled = "".join(
        f'    version_labels {{ key: "{label}" value: {version} }}\n'
        for label, version in labels.items()
    )
    return (
        "# Written by set_labels.py, which also checks the order of a rollout: do not edit.\n"
        "model_config_list {\n"
        "  config {\n"
        f'    name: "{model}"\n'
        f'    base_path: "/models/{model}"\n'
        '    model_platform: "tensorflow"\n'
        "    model_version_policy {\n"
        "      specific {\n"
        f"{loaded}"
        "      }\n"
        "    }\n"
        f"{labelled}"
        "  }\n"
        "}\n"
    )


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        print(f"set_labels.py: {error}", file=sys.stderr)
        sys.exit(2)
