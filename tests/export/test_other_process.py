"""A program in another process: its answer, or one line that says what is wrong."""

import pytest

from tfformer.export import other_process
from tfformer.export.other_process import ask


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Write the program; return its name."""
    monkeypatch.setattr(other_process, "PROGRAMS", tmp_path)

    def written(text: str) -> str:
        (tmp_path / "mine.py").write_text(text)
        return "mine"

    return written


def test_the_last_line_is_the_answer(program):
    text = "import json, sys\nprint('hello')\nprint(json.dumps(json.load(sys.stdin)[::-1]))\n"
    assert ask(program(text), [], ["a", 2]) == [2, "a"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pass", "its last line is no answer: ''"),
        ("print('[1, 2')", r"its last line is no answer: '\[1, 2'"),
        ("raise SystemExit(3)", "exit code 3"),
        ("raise KeyError('lost')", "KeyError: 'lost'"),
    ],
)
def test_a_program_without_an_answer_is_one_line(program, text, reason):
    with pytest.raises(ValueError, match=f"cannot be run by another process.*: {reason}$"):
        ask(program(text), [], [])
