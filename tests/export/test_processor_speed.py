"""The measured speed of a type of number, by a clock that the test sets."""

import pytest

from tfformer.export import processor_speed


def test_the_fastest_of_ten_calls_counts(monkeypatch):
    seconds = [5, 3, 9, 2, 8, 4, 7, 6, 1.5, 10]
    clock = iter([reading for each in seconds for reading in (100, 100 + each)])
    monkeypatch.setattr(processor_speed.time, "perf_counter", lambda: next(clock))
    calls = []
    assert processor_speed.best_of_ten(lambda: calls.append(None)) == 1.5
    assert len(calls) == 10


def test_the_speed_is_that_of_a_product_of_this_type(monkeypatch):
    """Both products are known by the type of their result, and one takes longer."""
    seconds = {"float32": 2, "bfloat16": 5}
    monkeypatch.setattr(processor_speed, "SIZE", 8)
    monkeypatch.setattr(processor_speed, "best_of_ten", lambda call: seconds[call().dtype.name])
    assert processor_speed.multiplications_per_second("float32") == 8**3 / 2
    assert processor_speed.beside_float32("bfloat16") == 0.4


def test_a_slower_type_is_refused():
    message = "multiplies in bfloat16 0.40 times as fast as in float32, .* --for-other-processors"
    with pytest.raises(ValueError, match=message):
        processor_speed.check_not_slower("bfloat16", 0.4)


def test_a_faster_type_is_not():
    processor_speed.check_not_slower("bfloat16", 1.0)
