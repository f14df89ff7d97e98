"""Known sizes of models, which a recipe names as `model.preset`."""

from typing import Any

# base, big: Vaswani et al. 2017, table 3; tiny, small: our own, whose dropout a recipe sets.
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"num_layers": 4, "d_model": 128, "num_heads": 4, "d_ff": 256},
    "small": {"num_layers": 6, "d_model": 256, "num_heads": 4, "d_ff": 1024},
    "base": {"num_layers": 6, "d_model": 512, "num_heads": 8, "d_ff": 2048, "dropout": 0.1},
    "big": {"num_layers": 6, "d_model": 1024, "num_heads": 16, "d_ff": 4096, "dropout": 0.3},
}
