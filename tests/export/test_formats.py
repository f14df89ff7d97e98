"""Names and options of formats are checked before a run is opened."""

import pytest

from tfformer.export import check_options, options_of
from tfformer.export.pipeline import export_model


@pytest.mark.parametrize(
    ("format", "options", "message"),
    [
        ("tflite", {}, "format='tflite' is not known; choose one of 'saved_model', 'ctranslate2"),
        ("ctranslate2", {"dtype": "float32"}, "format='ctranslate2' has no option 'dtype'; its"),
        ("web", {"static": True}, "format='web' has no option 'static'; its options are "),
        ("marian", {"beam_size": 2}, "has no option 'beam_size'; its options are quantize, sam"),
        ("marian", {"quantize": "float16"}, "quantize='float16' is not known; choose one of 'none"),
        ("marian", {"samples": ["a"]}, "uses samples only with quantize='int8'; leave them out"),
        ("hugging_face", {"quantize": "int8"}, "no option 'quantize'; its options are none"),
        ("litert", {"quantize": "int4"}, "quantize='int4' is not known; choose one of 'none'"),
        ("web", {"quantize": "int4"}, "quantize='int4' is not known; choose one of 'none'"),
    ],
)
def test_what_a_format_has_not_is_named(format, options, message):
    with pytest.raises(ValueError, match=message):
        export_model("no/such/run", "models", format, **options)


def test_a_page_has_no_choice_of_what_it_needs():
    assert set(options_of("litert")) - set(options_of("web")) == {
        "beam_size",
        "length_penalty",
        "static",
    }
    check_options("web", {"quantize": "int8"})
