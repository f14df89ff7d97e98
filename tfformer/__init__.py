"""The Transformer for machine translation on TensorFlow and Keras 3.

Train, score, and ship one artifact. `__init__.pyi` lists the public names; each is imported when it
is first used, so that the command line starts fast. The layers are registered as soon as Keras is
imported, so `.keras` files load without `custom_objects`.
"""

import threading
from typing import Any

import lazy_loader

from tfformer.runtime.extras import install_line
from tfformer.runtime.keras_registration import check_backend, register_with_keras

__version__ = "0.1.0.dev0"

_import_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_TURN = threading.RLock()  # TensorFlow fails if two threads import parts of it at once


def __getattr__(name: str) -> Any:
    with _TURN:
        try:
            return _import_name(name)
        except ModuleNotFoundError as error:
            if line := install_line(error):
                raise ModuleNotFoundError(f"tfformer.{name}: {line}", name=error.name) from error
            raise


check_backend()
register_with_keras()
