"""Which module may know which: imports inside the package run downward only."""

import ast
from pathlib import Path

import pytest

import tfformer

PACKAGE = Path(tfformer.__file__).parent

ALLOWED = {
    "special_ids": set(),
    "arguments": set(),
    "files": set(),
    "config": set(),
    "schedules": set(),
    "losses": set(),
    "optimizer": {"config", "schedules"},
    "evaluation": set(),
    "phrasebook_lexicon": set(),
    "phrasebook": {"phrasebook_lexicon", "files"},
    "masks": {"special_ids"},
    "layers": set(),
    "sharding": set(),
    "tokenizers": {"special_ids", "files"},
    "decoding": {"special_ids"},
    "transformer": {"layers", "masks", "sharding"},
    "language_model": {"layers", "masks", "sharding", "special_ids", "transformer"},
    "reading": {"phrasebook"},
    "data": {"reading", "special_ids", "tokenizers"},
    "checkpoints": {"config", "files", "language_model", "tokenizers", "transformer"},
    "translator": {"checkpoints", "config", "data", "decoding", "special_ids", "tokenizers", "transformer"},
    "generator": {"checkpoints", "data", "decoding", "language_model", "special_ids", "translator"},
    "validation": {"checkpoints", "config", "data", "evaluation", "generator", "losses", "reading", "translator"},
    "attention_maps": {"masks", "phrasebook", "special_ids", "tokenizers", "transformer", "translator"},
    "alignment": {"attention_maps", "translator"},
    "figures": {"files"},
    "attention_pictures": {"attention_maps", "figures", "files"},
    "warmup_requests": set(),
    "saved_model_writer": {
        *("checkpoints", "decoding", "generator", "special_ids", "tokenizers", "translator", "warmup_requests"),
    },
    "saved_model_runner": set(),
    "ctranslate2_writer": {"checkpoints", "layers", "special_ids", "tokenizers", "transformer"},
    "ctranslate2_runner": set(),
    "litert_operations": set(),
    "litert_quantizer": {"litert_operations"},
    "litert_compactor": {"litert_operations"},
    "litert_metadata": set(),
    "litert_writer": {
        *("litert_compactor", "litert_metadata", "litert_operations", "litert_quantizer", "special_ids"),
        "translator",
    },
    "litert_runner": set(),
    "parity": {"generator", "litert_writer", "special_ids", "translator"},
    "model_card": set(),
    "web_page": set(),
    "export": {
        *("checkpoints", "config", "ctranslate2_writer", "evaluation", "files", "generator", "litert_writer"),
        *("model_card", "parity", "reading", "saved_model_writer", "special_ids", "tokenizers", "translator"),
        "web_page",
    },
    "served_model": set(),
    "batching": {"served_model"},
    "serving_json": {"served_model"},
    "serving_grpc": {"batching", "served_model"},
    "serving": {"batching", "export", "served_model", "serving_grpc", "serving_json"},
    "training": {"checkpoints", "config", "data", "losses", "optimizer", "reading", "tokenizers", "validation"},
    "inspection": {"checkpoints", "config", "layers", "validation"},
    "run_pictures": {"checkpoints", "config", "figures", "layers", "masks", "optimizer", "special_ids"},
}
TOP = {"__init__", "__main__", "cli"}


def imports_of(module: str) -> set[str]:
    tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "tfformer":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tfformer."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("tfformer.")}
    return found


@pytest.mark.parametrize("module", sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem not in TOP))
def test_a_module_imports_only_what_stands_below_it(module):
    assert imports_of(module) <= ALLOWED[module]


def test_nothing_imports_in_a_circle():
    done = set()
    while remaining := set(ALLOWED) - done:
        ready = {module for module in remaining if ALLOWED[module] <= done}
        assert ready, f"a circle among {remaining}"
        done |= ready
