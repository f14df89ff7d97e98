"""The package's docstrings have a short first line and a section of arguments."""

import ast
from collections.abc import Iterator
from pathlib import Path

import tfformer

PACKAGE = Path(tfformer.__file__).parent
FIRST_LINE = 80  # characters
MANY_ARGUMENTS = 5
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings() -> Iterator[tuple[str, Documented, str]]:
    """Yield the place, the node and the docstring of everything that has one."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, Documented) and (text := ast.get_docstring(node)):
                name = "" if isinstance(node, ast.Module) else node.name
                yield f"{file.relative_to(PACKAGE)} {name}", node, text


def needs_no_section(function: ast.FunctionDef) -> bool:
    """Whether a function has few arguments, is private, or is a grammar rule.

    The example of a rule says it all.
    """
    group = function.args
    names = {argument.arg for argument in (*group.posonlyargs, *group.args, *group.kwonlyargs)}
    is_rule = any(ast.unparse(mark).startswith("rule(") for mark in function.decorator_list)
    few = len(names - {"self", "cls"}) < MANY_ARGUMENTS
    return few or is_rule or function.name.startswith("_")


def test_every_docstring_begins_with_one_short_line():
    firsts = {place: text.splitlines()[0] for place, _, text in docstrings()}
    assert {place: line for place, line in firsts.items() if len(line) > FIRST_LINE} == {}


def test_every_public_function_of_many_arguments_explains_them():
    functions = [
        (place, node, text)
        for place, node, text in docstrings()
        if isinstance(node, ast.FunctionDef) and not needs_no_section(node)
    ]
    assert functions
    assert [place for place, _, text in functions if "Args:" not in text] == []
