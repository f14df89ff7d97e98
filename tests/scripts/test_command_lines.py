"""The help pages and the errors of the scripts."""

import sys

import alignment_error_rate
import benchmark
import command_line
import pytest


@pytest.mark.parametrize("name", benchmark.MEASUREMENTS)
def test_each_measurement_has_a_help_page(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["benchmark.py", name.replace("_", "-"), "--help"])
    with pytest.raises(SystemExit) as end:
        benchmark.main()
    assert end.value.code == 0
    assert "usage: benchmark.py" in capsys.readouterr().out


def test_a_script_answers_help_and_mistakes(monkeypatch, capsys):
    """The words must fit the parameters of `main`."""
    usage = alignment_error_rate.__doc__
    for words, code in (([], usage), (["a", "b"], usage), (["absent"], "script: absent is not")):
        monkeypatch.setattr(sys, "argv", ["script", *words])
        with pytest.raises(SystemExit) as end:
            command_line.run(alignment_error_rate.main)
        assert end.value.code.startswith(code)
    monkeypatch.setattr(sys, "argv", ["script", "--help"])
    command_line.run(alignment_error_rate.main)
    assert capsys.readouterr().out == f"{usage}\n"
