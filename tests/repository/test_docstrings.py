"""The docstrings have a short first line, a section of arguments, and one style."""

import ast
import inspect
import pydoc
import re
from collections.abc import Iterator
from pathlib import Path

import tfformer

PACKAGE = Path(tfformer.__file__).parent
API_PAGE = PACKAGE.parent / "docs" / "reference.md"
MANY = 5  # arguments
ENTRY = re.compile(r"^    (?:\*{0,2}[\w.]+): (\S+)", re.MULTILINE)  # a name, and its first word
SECTION = re.compile(r"^(?:Args|Attributes|Raises):\n(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings() -> Iterator[tuple[str, Documented, str]]:
    """Yield the place, the node and the docstring of everything that has one."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, Documented) and (text := ast.get_docstring(node)):
                name = "" if isinstance(node, ast.Module) else node.name
                yield f"{file.relative_to(PACKAGE)} {name}", node, text


def arguments_in_order(node: ast.ClassDef | ast.FunctionDef) -> list[str]:
    """The names of a signature, as they stand in it; of a class those of its constructor."""
    if isinstance(node, ast.ClassDef):
        made = [part for part in node.body if getattr(part, "name", "") == "__init__"]
        return arguments_in_order(made[0]) if made else []
    group = node.args
    names = [argument.arg for argument in (*group.posonlyargs, *group.args, *group.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def test_every_public_function_of_many_arguments_explains_them():
    """Public is what the page of the API names, and the methods of its classes."""
    names = re.findall(r"^::: ([\w.]+)$", API_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    public = [pydoc.locate(name) for name in names]
    classes = [value for value in public if inspect.isclass(value)]
    methods = [
        method
        for owner in classes
        for name, method in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith(("_", "compute_")) and method.__module__.startswith("tfformer")
    ]
    functions = [value for value in public if inspect.isfunction(value)] + methods
    many = [f for f in functions if len({*inspect.signature(f).parameters} - {"self"}) >= MANY]
    assert many
    assert [f.__qualname__ for f in many if "Args:" not in (inspect.getdoc(f) or "")] == []


def test_every_entry_begins_with_a_capital_letter():
    """Unless it begins with code, a number or a formula."""
    small = [
        f"{place}: {word}"
        for place, _, text in docstrings()
        for section in SECTION.findall(text)
        for word in ENTRY.findall(section)
        if re.fullmatch(r"[a-z]{2,}[,.;]?", word)
    ]
    assert small == []


def test_arguments_are_explained_in_the_order_of_the_signature():
    wrong = []
    for place, node, text in docstrings():
        section = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", inspect.cleandoc(text), re.M | re.S)
        if isinstance(node, ast.Module) or section is None:
            continue
        explained = re.findall(r"^    (\w+):", section[1], re.MULTILINE)
        in_order = [name for name in arguments_in_order(node) if name in explained]
        if in_order and in_order != [name for name in explained if name in in_order]:
            wrong.append(place)
    assert wrong == []


def test_an_entry_of_raises_is_the_condition_itself():
    """As in "ValueError: The preset is not known", without an "if"."""
    begun = [
        place for place, _, text in docstrings() if re.search(r"^\s+\w+Error: If ", text, re.M)
    ]
    assert begun == []
