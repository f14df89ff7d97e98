"""A text has the same translation alone and in any batch, in every engine."""

import itertools
import random
import warnings

import pytest
from support.faults import record, size
from support.hostile_requests import text
from support.nightly import sampled

from tfformer.data.sources import read_pairs
from tfformer.engines import open_engine

SENTENCES = [source for source, _ in itertools.islice(read_pairs("phrasebook:test"), 500)]
EXPORTS = ("saved_model_export", "dynamic_litert", "ctranslate2_export")
CASES = [("translator", 1), ("translator", 3), *((export, 1) for export in EXPORTS)]

BY_DAY = [("translator", 3), ("dynamic_litert", 1), ("ctranslate2_export", 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "beam_size"), sampled(CASES, BY_DAY))
def test_a_text_alone_is_translated_as_in_any_batch(request, name, beam_size):
    """Random batches contain texts that were first translated alone."""
    model = request.getfixturevalue(name)
    if name in EXPORTS:
        model = open_engine(model)
        request.addfinalizer(model.close)
    draw, wanted = random.Random(25), size("texts", 100)
    distinct = [draw.choice(SENTENCES) for _ in range(max(20, wanted // 50))]
    distinct += [text(draw).replace("\n", " ") for _ in range(len(distinct) // 4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a text was truncated
        alone = {t: model.translate([t], beam_size)[0] for t in distinct}
        compared, different = 0, []
        while compared < wanted:
            batch = draw.choices(distinct, k=draw.choice((2, 3, 16, 64)))
            again = model.translate(batch, beam_size)
            different += [t for t, new in zip(batch, again, strict=True) if new != alone[t]]
            compared += len(batch)
    record(f"texts that differ by batch, {name}", f"{len(different)} of {compared:,}")
    assert different == []
