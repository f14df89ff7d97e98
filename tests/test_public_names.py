"""The public names for Python and a type checker, and the import together with Keras."""

import ast
import builtins
import doctest
import inspect
import json
import operator
import os
import subprocess
import sys
import typing
from pathlib import Path

import keras
import numpy as np
import pytest

import tfformer
from tfformer.model.base_layer import LayerOptions

ROOT = Path(__file__).parents[1]
PUBLIC_NAMES = tfformer.__all__


def run(code: str, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    """Run a program in a separate process, with additional environment variables."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(folder)} | variables
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_dir_has_the_public_names_and_nothing_else():
    assert dir(tfformer) == tfformer.__all__ == sorted(tfformer.__all__)


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_a_public_constructor_or_function_names_each_of_its_arguments(name):
    """Or types them with `Unpack`, like Keras' arguments of any layer.

    The fields of a format's class are the options of an export.
    """
    signature = inspect.signature(operator.attrgetter(name)(tfformer))
    for parameter in signature.parameters.values():
        assert parameter.kind is not parameter.VAR_POSITIONAL
        if parameter.kind is parameter.VAR_KEYWORD and name != "export_model":
            assert parameter.annotation == typing.Unpack[LayerOptions]


def test_the_options_of_layers_are_the_four_arguments_of_keras():
    names = {"trainable", "dtype", "name", "activity_regularizer"}
    assert LayerOptions.__annotations__.keys() == names
    assert names <= inspect.signature(keras.layers.Layer.__init__).parameters.keys()


def documented(name: str) -> dict[str, object]:
    """Return a public name's value and the public methods of a class, by name."""
    value = operator.attrgetter(name)(tfformer)
    if not inspect.isclass(value):
        return {name: value}
    methods = {
        f"{name}.{method}": function
        for method, function in inspect.getmembers(value, inspect.isroutine)
        if not method.startswith("_") and function.__module__.startswith("tfformer")
    }
    return {name: value} | methods


def undefined_names(example: str) -> set[str]:
    """Return the names that code reads but neither defines nor imports."""
    nodes = list(ast.walk(ast.parse(example)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    read = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    known = {name.id for name in names if isinstance(name.ctx, ast.Store)} | set(dir(builtins))
    for node in nodes:
        if isinstance(node, ast.alias):
            known.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
    return read - known


@pytest.mark.parametrize("name", PUBLIC_NAMES)
def test_an_example_can_be_pasted_into_an_empty_namespace(name):
    """Pytest's doctest runs examples in the namespace of the module instead."""
    assert ">>> import" in operator.attrgetter(name)(tfformer).__doc__
    for module, value in documented(name).items():
        examples = doctest.DocTestParser().get_examples(value.__doc__ or "")
        assert undefined_names("".join(example.source for example in examples)) == set(), module


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="No tfformer attribute Transfomer"):
        tfformer.Transfomer  # noqa: B018


def test_importing_the_package_imports_neither_keras_nor_tensorflow(tmp_path):
    code = "import sys, tfformer; print({'keras', 'tensorflow', 'numpy'} & set(sys.modules))"
    assert run(code, tmp_path).stdout == "set()\n"


@pytest.mark.parametrize("backend", ["jax", "torch", "numpy"])
def test_another_backend_in_the_environment_is_refused_in_one_line(tmp_path, backend):
    done = run("import tfformer", tmp_path, KERAS_BACKEND=backend)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: KERAS_BACKEND is {backend!r}, but tfformer requires TensorFlow; "
        "set KERAS_BACKEND=tensorflow before Keras is imported"
    )


@pytest.mark.parametrize(
    "command",
    [["-m", "tfformer"], ["-P", "-m", "tfformer"], [Path(sys.executable).parent / "tfformer"]],
)
def test_the_command_line_refuses_another_backend_in_one_line(command):
    done = subprocess.run(
        [sys.executable, *command, "--help"],
        env=os.environ | {"KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("tfformer: KERAS_BACKEND is 'jax', but tfformer requires")


def test_another_backend_in_keras_json_is_refused_unless_the_environment_says_tensorflow(tmp_path):
    file = tmp_path / ".keras" / "keras.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"backend": "jax"}))
    message = f"ImportError: the backend in {file} is 'jax', but tfformer requires TensorFlow"
    assert run("import tfformer", tmp_path, KERAS_BACKEND="").stderr.count(message) == 1
    assert run("import tfformer", tmp_path, KERAS_BACKEND="tensorflow").returncode == 0
    assert run("import tfformer", tmp_path, KERAS_BACKEND="", KERAS_HOME="/none").returncode == 0


def test_a_keras_json_that_cannot_be_read_changes_nothing(tmp_path):
    (tmp_path / "keras.json").write_text("[")
    done = run("import tfformer", tmp_path, KERAS_BACKEND="", KERAS_HOME=str(tmp_path))
    assert done.returncode == 0


def test_an_imported_keras_of_another_backend_is_refused(tmp_path):
    code = """
import sys, types
sys.modules["keras"] = types.SimpleNamespace(backend=types.SimpleNamespace(backend=lambda: "jax"))
import tfformer
"""
    message = "ImportError: the backend of the imported Keras is 'jax', but tfformer requires"
    assert message in run(code, tmp_path).stderr


@pytest.fixture(scope="module")
def keras_file(tmp_path_factory) -> tuple[Path, float]:
    """The file of a model after one step, and the first logit for ids of one."""
    model = tfformer.Transformer(9, 11, num_layers=1, d_model=8, num_heads=2, d_ff=8)
    rate = tfformer.WarmupSchedule(d_model=8)
    model.compile(keras.optimizers.SGD(rate), tfformer.SmoothedCrossEntropy(), run_eagerly=True)
    ids = np.ones((1, 1), np.int32)
    inputs = {"source": ids, "target": ids}
    model.train_on_batch(inputs, ids)
    path = tmp_path_factory.mktemp("saved") / "model.keras"
    model.save(path)
    return path, float(model(inputs)[0, 0, 0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "imports",
    [
        "import tfformer; import keras",
        *(
            pytest.param(imports, marks=pytest.mark.nightly)
            for imports in (
                "import keras; import tfformer",
                "import importlib.util, tfformer; importlib.util.find_spec('keras'); import keras",
                "import tensorflow as tf; import tfformer; import keras",
                "import tfformer; tfformer.WarmupSchedule; import keras",
            )
        ),
    ],
)
def test_a_keras_file_loads_in_any_order_of_imports(tmp_path, keras_file, imports):
    """The model learns on from its step, as the one saved.

    Keras keeps its loader, and the finder that waits for its import is removed.
    """
    path, logit = keras_file
    code = f"""
import sys
{imports}
model = keras.models.load_model({str(path)!r})
ids = keras.ops.ones((1, 1), "int32")
rate = model.optimizer.learning_rate
print(float(model({{"source": ids, "target": ids}})[0, 0, 0]), float(rate), type(model).__module__)
print(type(keras.__loader__).__name__, type(keras.__spec__.loader).__name__)
print([type(finder).__name__ for finder in sys.meta_path].count("_KerasFinder"))
"""
    first, *lines = run(code, tmp_path).stdout.splitlines()
    loaded_logit, rate, module = first.split()
    assert float(loaded_logit) == pytest.approx(logit, rel=1e-5)
    assert float(rate) == pytest.approx(8**-0.5 * 2 * 4000**-1.5)  # of the second step
    assert module == "tfformer.model.transformer"
    assert lines == ["SourceFileLoader SourceFileLoader", "0"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ["Config", "Tokenizer"],  # which do not import TensorFlow
        pytest.param(
            ["Translator", "Transformer", "Encoder", "beam_search"], marks=pytest.mark.nightly
        ),
    ],
)
def test_threads_may_be_the_first_to_use_different_names(tmp_path, names):
    code = f"""
import tfformer
from concurrent.futures import ThreadPoolExecutor
names = {names}
with ThreadPoolExecutor(4) as threads:
    found = threads.map(lambda name: getattr(tfformer, name), names)
    print([value.__name__ for value in found] == names)
"""
    done = run(code, tmp_path)
    assert done.stdout == "True\n", done.stderr
