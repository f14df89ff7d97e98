"""From a recipe to a run directory: optimizer, schedules, validation, `model.fit`."""

import keras  # noqa: F401  before this package's modules, which register their classes with it
