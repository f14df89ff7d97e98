"""Files beside the checkout that are not in the repository, such as data and published models."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def beside_the_checkout(*names: str) -> Path | None:
    """Return the folder `shared/NAMES` beside the checkout or up to two levels above it.

    Returns:
        The folder, or None if it is missing; the caller then skips its tests.
    """
    places = (place.joinpath("shared", *names) for place in list(ROOT.parents)[:3])
    return next(filter(Path.is_dir, places), None)
