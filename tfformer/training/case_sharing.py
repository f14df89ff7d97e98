"""Updates of an embedding matrix whose rows share what does not depend on case.

The embedding of a piece is the sum of a vector of its letters and a vector of its case, as in
factored translation (García-Martínez et al. 2016). What is learned of "dog" is so known of "DOG",
and what is learned of capitals is known of all words. The matrix itself stays an ordinary one, so
nothing else knows of the sum: the optimizer sums the gradients of each vector over the rows that it
is part of, and adds the vector's step to all of them.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfformer.data.case_variants import CASES, CaseFamilies


class CaseSharing(keras.optimizers.Optimizer):
    """An optimizer of matrices whose rows share vectors; a base before Keras' own."""

    def share_rows(self, matrix: keras.Variable, families: CaseFamilies) -> None:
        """Make each row of a matrix (V, D) the sum of its family's vector and its case's vector.

        The optimizer must be built. If a family leaves no room for a vector per case, as in a
        language without capitals, nothing is shared.
        """
        rows = len(families.family)
        if families.families + CASES > rows:
            return
        self._families: dict[int, CaseFamilies] = getattr(self, "_families", {})
        self._families[self._get_variable_index(matrix)] = families
        first = {family: row for row, family in reversed(list(enumerate(families.family)))}
        matrix.assign(tf.gather(matrix, [first[family] for family in families.family]))

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update a variable, or the vectors whose sums are the rows of a matrix.

        The optimizer's state of a matrix (V, D) then belongs to the vectors: one row per family,
        followed by one per case.
        """
        families = getattr(self, "_families", {}).get(self._get_variable_index(variable))
        if families is None:
            super().update_step(gradient, variable, learning_rate)
            return
        gradient = tf.convert_to_tensor(gradient)
        rows = gradient.shape[0]
        case_rows = families.families + families.case
        summed = tf.math.unsorted_segment_sum(gradient, families.family, rows)
        summed += tf.math.unsorted_segment_sum(gradient, case_rows, rows)
        before = tf.identity(variable)
        super().update_step(summed, variable, learning_rate)
        step = tf.convert_to_tensor(variable) - before
        spread = tf.gather(step, families.family) + tf.gather(step, case_rows)
        self.assign(variable, before + spread)


class Adam(CaseSharing, keras.optimizers.Adam):
    """Keras' Adam, of rows that may share vectors."""


class AdamW(CaseSharing, keras.optimizers.AdamW):
    """Keras' AdamW, of rows that may share vectors."""
