"""Writes the numbers of a model without building it.

One variable stands in memory at a time. Keras decides the names in a file of weights. They are read
off the file of a model that is as deep and has two numbers where this one has hundreds.
"""

from collections.abc import Callable
from io import BytesIO

import h5py
import numpy as np

from tfformer.checkpoints.weight_names import Place, variables
from tfformer.config import ModelConfig
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Tokenizers, new_model


class StreamedWeights:
    """The weights of a model that is never built.

    Args:
        config: The recipe of the model.
        tokenizers: Its vocabularies.
        tensor_of: Gives the array of a place; asked once for each.
    """

    def __init__(
        self,
        config: ModelConfig,
        tokenizers: Tokenizers,
        tensor_of: Callable[[Place], np.ndarray],
    ) -> None:
        dialect = config.dialect.replace(num_decoder_heads=1, decoder_d_ff=1)
        self._narrow = config.replace(d_model=2, num_heads=1, d_ff=1, dialect=dialect)
        self._tokenizers = tokenizers
        self._tensor_of = tensor_of

    def save_weights(self, filepath: BytesIO) -> None:
        """Write the file that Keras would write.

        Args:
            filepath: A file whose name ends in `.weights.h5`.
        """
        model = new_model(self._narrow, self._tokenizers)
        assert isinstance(model, Transformer)
        places = []
        for number, (variable, joined) in enumerate(variables(model)):
            variable.assign(np.full(variable.shape, number))
            places.append(joined)
        pattern = _NamedBytes()
        model.save_weights(pattern)
        with h5py.File(pattern) as names, h5py.File(filepath, "w") as file:

            def write(name: str, item: h5py.Group | h5py.Dataset) -> None:
                if isinstance(item, h5py.Group):
                    file.create_group(name).attrs.update(item.attrs)
                else:
                    file[name] = self._array(places[int(item[(0,) * item.ndim])])

            names.visititems(write)

    def _array(self, places: tuple[Place, ...]) -> np.ndarray:
        parts = [self._tensor_of(place) for place in places]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


class _NamedBytes(BytesIO):
    """A file in memory with a name by which Keras knows a file of weights."""

    def __str__(self) -> str:
        return "memory.weights.h5"
