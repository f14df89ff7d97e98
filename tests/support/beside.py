"""Files beside the checkout that are not part of the repository: data, models of others."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def beside_the_checkout(*names: str) -> Path | None:
    """Return the folder `shared/NAMES` beside the checkout or up to two levels above it.

    Returns:
        The folder, or None where there is none: the caller's tests are skipped then.
    """
    places = (place.joinpath("shared", *names) for place in list(ROOT.parents)[:3])
    return next(filter(Path.is_dir, places), None)
