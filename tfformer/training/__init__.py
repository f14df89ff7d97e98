"""From a recipe to a run directory: optimizer, schedules, validation, `model.fit`."""
