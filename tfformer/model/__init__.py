"""The paper, on Keras: masks, layers, models and losses."""

import keras  # noqa: F401  before this package's modules, which register their classes with it

from tfformer.runtime.keras_registration import check_backend

check_backend()
