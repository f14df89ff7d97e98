"""The rows of the tasks, beside scripted models."""

from types import SimpleNamespace

from tfformer.data.sources import read_pairs
from tfformer.export.formats import EXAMPLES
from tfformer.export.tasks import TASKS, right_examples


def test_only_examples_that_the_model_gets_right_are_offered():
    """A page of a run that learned another text must not offer nonsense."""
    answers = {"Good morning.": "Guten Morgen.", "Thank you.": "Löffel luden."}
    translator = SimpleNamespace(translate=lambda sentences: [answers[one] for one in sentences])
    known = {"Good morning.": "Guten Morgen.", "Thank you.": "Danke."}
    assert right_examples(translator, known) == ["Good morning."]
    assert right_examples(translator, {}) == []
    assert TASKS["decoder"].examples(None, known) == []


def test_the_phrasebooks_short_examples_are_in_its_text():
    (long,) = (source for source in EXAMPLES["phrasebook:valid"] if len(source.split()) > 6)
    text = dict(read_pairs("phrasebook:train"))
    for source, target in EXAMPLES["phrasebook:valid"].items():
        assert source == long or text[source] == target
