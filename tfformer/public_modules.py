"""Python's list of the package's modules, for `help(tfformer)`.

`help` prints every module that the finder of the package's folder lists. The finder here lists the
public ones; it finds all.
"""

import pkgutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.abc import PathEntryFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def list_public_packages(folders: Iterable[str], names: Sequence[str]) -> None:
    """Let Python list these packages of a package, and no other module of it.

    All can be imported as before.

    Args:
        folders: The package's `__path__`.
        names: Its public packages.
    """
    for folder in folders:
        finder = pkgutil.get_importer(folder)
        if isinstance(finder, _Finder):  # the package is imported again
            finder = finder.finder
        if isinstance(finder, PathEntryFinder):  # an import from a zip has another
            sys.path_importer_cache[folder] = _Finder(finder, names)


class _Finder(PathEntryFinder):
    """Finds all modules of a folder, and lists the public packages alone."""

    def __init__(self, finder: PathEntryFinder, names: Sequence[str]) -> None:
        self.finder = finder
        self.names = names

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        return self.finder.find_spec(fullname, target)

    def invalidate_caches(self) -> None:
        self.finder.invalidate_caches()

    def iter_modules(self, prefix: str = "") -> Iterator[tuple[str, bool]]:
        """Yield each name and that it is a package, as `pkgutil` asks a finder for them."""
        return ((prefix + name, True) for name in self.names)
