"""Vocabularies that contain each piece in lower case, Capitalised and IN CAPITALS.

A text is then segmented the same way however it is capitalised, and embeddings can share what does
not depend on case (`tfformer/training/optimizer.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfformer.data.sentencepiece_proto import NORMAL, ModelProto
from tfformer.special_ids import END_ID

BLANK = "\u2581"  # stands for the space before a word
LOWER, INITIAL, CAPITALS, CAPITAL = range(4)  # forms: dog, Dog, DOG, D; LOWER also for no letters
FORMS = 4
CASES = 2 * FORMS  # first the forms that are usual in their family, then those that are not


class CaseFamilies(NamedTuple):
    """Pieces that differ only in case, grouped into families."""

    family: np.ndarray  # (V,) the family of each piece
    case: np.ndarray  # (V,) the form of each piece, plus FORMS unless it is the most frequent form
    families: int  # the number of families


def with_case_variants(model: bytes) -> bytes:
    """Add the capitalised forms of each piece of a lower-case unigram model, equally scored."""
    proto = ModelProto.FromString(model)
    known = {piece.piece for piece in proto.pieces}
    for piece in list(proto.pieces):
        for form in _forms(piece.piece) if piece.type == NORMAL else ():
            if form not in known:
                known.add(form)
                proto.pieces.add(piece=form, score=piece.score, type=NORMAL)
    proto.trainer_spec.vocab_size = len(proto.pieces)
    return proto.SerializeToString()


def case_families(pieces: Sequence[str], counts: Sequence[int] | np.ndarray) -> CaseFamilies:
    """Group the pieces that differ only in case.

    In German "Hund" is the usual form and "hund" is not; for "rot" and "Rot" it is the reverse. If
    the usual and the unusual form shared one case vector, case would be independent of the word: a
    softmax that is undecided between "Hund" and "rot" would have to give as much probability to
    "hund" and "Rot".

    Args:
        pieces: The vocabulary, special pieces first.
        counts: (V,) frequency of each piece, not counting sentence beginnings, where the case is
            uninformative.

    Returns:
        The family and case of each piece. Pieces of one family have different cases: if two differ
        in more than case, such as "Maße" and "Masse", the second starts another family. The usual
        form of a family is its most frequent form, or the first of equally frequent forms.
    """
    forms = [LOWER if number <= END_ID else _form(piece) for number, piece in enumerate(pieces)]
    numbers: dict[object, int] = {}
    members = set()
    family = []
    for number, (piece, form) in enumerate(zip(pieces, forms, strict=True)):
        letters: object = piece.casefold() if number > END_ID and form is not None else number
        if (letters, form) in members:
            letters = number
        members.add((letters, form))
        family.append(numbers.setdefault(letters, len(numbers)))
    usual: dict[int, int] = {}  # the usual piece of each family
    for number, of in enumerate(family):
        if counts[number] > counts[usual.setdefault(of, number)]:
            usual[of] = number
    case = [
        (form or LOWER) + (0 if usual[of] == number else FORMS)
        for number, (form, of) in enumerate(zip(forms, family, strict=True))
    ]
    return CaseFamilies(np.array(family, np.int32), np.array(case, np.int32), families=len(numbers))


def _forms(piece: str) -> list[str]:
    """The piece in capitals and, if it begins a word, with a capital initial."""
    word = piece.removeprefix(BLANK)
    if word == piece:
        return [word.upper()]
    return [BLANK + word[:1].upper() + word[1:], BLANK + word.upper()]


def _form(piece: str) -> int | None:
    """The form of a piece; None for mixed case."""
    word = piece.removeprefix(BLANK)
    if word == word.lower():
        return LOWER
    if len(word) == 1:
        return CAPITAL
    if word == word.upper():
        return CAPITALS
    return INITIAL if word == word[:1].upper() + word[1:].lower() else None
