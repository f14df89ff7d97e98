"""XLA compiles the training step for every optimizer, dtype and setting of a recipe."""

import numpy as np
import pytest
import tensorflow as tf

import tfformer
from tfformer.config import Config
from tfformer.data.case_variants import case_families
from tfformer.model.losses import SmoothedCrossEntropy
from tfformer.training.optimizer import new_optimizer

PIECES = ["<pad>", "<unk>", "<s>", "</s>", "▁a", "▁A", "▁b", "▁B", "c"]
WITH_AVERAGES = {"optimizer": "adamw", "weight_decay": 0.1, "ema_momentum": 0.9}
SIZES = {"num_layers": 1, "d_model": 8, "num_heads": 2, "d_ff": 8, "dropout": 0.1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "training"),
    [
        ("mixed_bfloat16", {"optimizer": "muon", "accumulate_steps": 2}),
        pytest.param("mixed_float16", WITH_AVERAGES, marks=pytest.mark.nightly),
        pytest.param("float32", {"optimizer": "adam", "clip_norm": 1.0}, marks=pytest.mark.nightly),
    ],
)
def test_the_step_is_lowered(dtype, training):
    model = tfformer.Transformer(9, 9, dtype=dtype, norm="pre", tie_embeddings="all", **SIZES)
    config = Config.from_dict({"training": {"dtype": dtype} | training})
    optimizer = new_optimizer(config, epoch_steps=10)
    model.compile(optimizer, SmoothedCrossEntropy(0.1), jit_compile=True)
    model.optimizer.build(model.trainable_variables)
    families = case_families(PIECES, np.arange(9))
    optimizer.share_rows(model.source_embedding.embeddings, families)
    ids = tf.ones((2, 3), tf.int32)
    batch = ({"source": ids, "target": ids}, ids, tf.ones((2, 3)))
    step = tf.function(model.train_step, jit_compile=True, autograph=False)
    program = step.experimental_get_compiler_ir(batch)(stage="hlo")
    assert " dot(" in program
