"""Registers our classes with Keras as soon as it is imported, and requires the TensorFlow backend.

`import tfformer` is quick because it does not import Keras. A finder on `sys.meta_path` waits for
the first `import keras`, lets Python import it, then imports our modules that register classes with
Keras. `keras.models.load_model` therefore finds them regardless of the order of imports.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

REGISTERING = (
    "tfformer.model.transformer",
    "tfformer.model.language_model",
    "tfformer.model.losses",
    "tfformer.model.simcut",
    "tfformer.training.schedules",
    "tfformer.training.optimizer",
)


def check_backend() -> None:
    """Reject Keras backends other than TensorFlow, without importing Keras.

    It raises ImportError, or SystemExit with one line if this process is the command line.
    """
    backend, origin = _backend()
    if backend == "tensorflow":
        return
    message = (
        f"{origin} is {backend!r}, but tfformer requires TensorFlow; set KERAS_BACKEND=tensorflow "
        "before Keras is imported"
    )
    is_module = sys.argv[0] == "-m" and "tfformer" in sys.orig_argv  # python -m tfformer
    if not is_module and Path(sys.argv[0]).name != "tfformer":
        raise ImportError(message)
    print(f"tfformer: {message}", file=sys.stderr)
    raise SystemExit(2)


def _backend() -> tuple[str, str]:
    """The backend that Keras uses or will use, and where it is set."""
    keras = sys.modules.get("keras")
    if keras is not None:
        return keras.backend.backend(), "the backend of the imported Keras"
    if backend := os.environ.get("KERAS_BACKEND"):
        return backend, "KERAS_BACKEND"
    file = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "keras.json"
    backend = "tensorflow"  # Keras' default too
    if file.is_file():
        import json

        with suppress(OSError, ValueError, AttributeError):
            backend = str(json.loads(file.read_text()).get("backend", backend))
    return backend, f"the backend in {file}"


def register_with_keras() -> None:
    """Register our classes with Keras, now or when Keras is imported."""
    if "keras" in sys.modules:
        _register()
    elif not any(isinstance(finder, _KerasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _KerasFinder())


def _register() -> None:
    for module in REGISTERING:
        importlib.import_module(module)


class _KerasFinder(MetaPathFinder):
    """Finds Keras with the next finders, and wraps its loader to register our classes."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "keras":
            return None
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :]
        specs = (finder.find_spec(fullname, path, target) for finder in behind)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _KerasLoader(spec.loader, finder=self)
        return spec


class _KerasLoader(Loader):
    """Loads Keras with Keras' own loader, restores that loader, and registers our classes."""

    def __init__(self, loader: Loader, finder: _KerasFinder) -> None:
        self.loader = loader
        self.finder = finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        if module.backend.backend() == "tensorflow":
            _register()
