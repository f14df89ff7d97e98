"""Recipes, read from and written to YAML and JSON. Does not import TensorFlow.

`__init__.pyi` lists the names; each is imported when it is first used, as translating an export
needs no recipe.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
