"""Altered copies of training text: capitals, typing errors, placeholders.

If a change here alters the copies, increase `text_cache.FORMAT`.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from tfformer.config import AugmentConfig
from tfformer.data.sources import Row, without_tag

Alteration = Callable[[Row, random.Random], Row]

PUNCTUATION = ".,;:!?\"'()»«„“”‘’…"  # around a word
MIN_ROWS = 5  # rows with a word; rarer words may co-occur by chance
MAX_SHARE = 0.1  # share of the rows; more frequent words are function words, such as "the"
MIN_DICE = 0.5

Lexicon = dict[tuple[str, str], float]  # (source word, target word) -> Dice coefficient
INITIAL = re.compile(r"(?<!\S)\w")  # the first letter of a word
LONG_WORD = re.compile(r"[^\W\d_]{4,}")  # long enough to be recognised with a wrong letter
WORD = re.compile(r"\S+")  # with the punctuation around it
LEXICON_ROWS = 20_000  # the first pairs of a text, from which the lexicon is learned
BEFORE = 0.5  # the share of words with a placeholder before them, as in "⟦1⟧ dogs"


def augmented(
    rows: Iterable[Row],
    shares: AugmentConfig,
    seed: int,
    placeholders: Sequence[str] = (),
    tags: Sequence[str] = (),
) -> Iterator[Row]:
    """Yield each row, followed by its altered copies; copies equal to their row are left out.

    The copies depend only on the row, its number, the shares and the seed, so every process and
    every pass sees the same text. Placeholders also depend on the first `LEXICON_ROWS` rows. A tag
    before a source never changes.

    Example:
        >>> list(augmented([("A dog.", "Ein Hund.")], AugmentConfig(upper=1), seed=1))
        [('A dog.', 'Ein Hund.'), ('A DOG.', 'EIN HUND.')]
    """
    rows = iter(rows)
    alterations = dict(ALTERATIONS)
    first: list[Row] = []
    if shares.placeholders:
        first = list(itertools.islice(rows, LEXICON_ROWS))
        alterations["placeholders"] = Placeholders(placeholders, learned_lexicon(first))
    chosen = {kind: share for kind in alterations if (share := getattr(shares, kind))}
    for number, row in enumerate(itertools.chain(first, rows)):
        yield row
        bare = (without_tag(row[0], tags), *row[1:])
        tag = row[0].removesuffix(bare[0])
        for kind, share in chosen.items():
            draw = random.Random(f"{seed} {number} {kind}")
            if draw.random() < share and (copy := alterations[kind](bare, draw)) != bare:
                yield (tag + copy[0], *copy[1:])


def changed_sides(change: Callable[[str], str]) -> Alteration:
    """Return the alteration that changes the text of each side."""
    return lambda row, draw: tuple(map(change, row))


def mistyped(row: Row, draw: random.Random) -> Row:
    """Swap, drop or double one letter of a longer word of the source."""
    source, *targets = row
    indices = [
        index
        for word in LONG_WORD.finditer(source)
        for index in range(word.start(), word.end() - 1)
    ]
    if not indices:
        return row
    index = draw.choice(indices)
    letter, following = source[index], source[index + 1]
    slip = draw.choice([following + letter, following, letter + letter + following])
    return (source[:index] + slip + source[index + 2 :], *targets)


class Placeholders:
    """Replace words on both sides of a pair by random placeholders.

    A placeholder replaces a word that occurs on both sides; it replaces or precedes both words of a
    pair that are translations of each other.

    Example:
        >>> lexicon = {("dog", "Hund"): 1.0}
        >>> replace = Placeholders(["⟦1⟧", "⟦2⟧"], lexicon)
        >>> replace(("My dog loves Anna.", "Mein Hund liebt Anna."), random.Random(2))
        ('My ⟦2⟧ loves ⟦1⟧.', 'Mein ⟦2⟧ liebt ⟦1⟧.')
    """

    def __init__(self, symbols: Sequence[str], lexicon: Lexicon) -> None:
        self.symbols = symbols
        self.lexicon = lexicon

    def __call__(self, row: Row, draw: random.Random) -> Row:
        """Return the pair with placeholders, or unchanged if no word can get one."""
        source, target, *links = row
        alike = [(word, word) for word in _words_alike(source, target)]
        unlike = [
            pair for pair in translated_words(source, target, self.lexicon) if pair[0] != pair[1]
        ]
        most = min(len(unlike), max(0, len(self.symbols) - len(alike)))
        some = draw.sample(unlike, draw.randint(min(1, most), most))
        words = [*alike, *some]
        symbols = draw.sample(self.symbols, min(len(words), len(self.symbols)))
        new_source, new_target = {}, {}
        for symbol, (word, translation) in zip(symbols, words, strict=False):
            is_before = (word, translation) in some and draw.random() < BEFORE
            new_source[word] = f"{symbol} {word}" if is_before else symbol
            new_target[translation] = f"{symbol} {translation}" if is_before else symbol
        texts = _with_words(source, new_source), _with_words(target, new_target)
        if len(" ".join(texts).split()) > len(f"{source} {target}".split()):
            links = [""] * len(links)  # a placeholder before a word moves the words after it
        return *texts, *links


def _with_words(text: str, new: dict[str, str]) -> str:
    """Replace words, but keep the punctuation around them."""

    def replaced(match: re.Match[str]) -> str:
        word = match[0].strip(PUNCTUATION)
        return match[0].replace(word, new.get(word, word), 1)

    return WORD.sub(replaced, text)


def _words_alike(source: str, target: str) -> list[str]:
    """Return the names and numbers that occur on both sides, because a translation copies them."""
    targets = set(words_of(target))
    first, *later = words_of(source) or [""]
    names = [word for word in later if word[:1].isupper() or not word.isalpha()]
    candidates = names if first.isalpha() else [first, *names]
    return [word for word in dict.fromkeys(candidates) if word in targets]


ALTERATIONS: dict[str, Alteration] = {  # key of `data.augment` -> function
    "upper": changed_sides(str.upper),  # German "ß" becomes "SS"
    "title": changed_sides(lambda text: INITIAL.sub(lambda letter: letter[0].upper(), text)),
    "lower": changed_sides(str.lower),
    "typos": mistyped,
}


# Word pairs that are translations of each other


def learned_lexicon(rows: Sequence[Row]) -> Lexicon:
    """Return the Dice coefficient of each pair of words that reaches MIN_DICE.

    The coefficient (Smadja et al. 1996) is twice the number of rows that contain both words,
    divided by the sum of the rows that contain each: 1 if the two words always occur together.
    """
    pairs = [(set(words_of(source)), set(words_of(target))) for source, target, *_ in rows]
    sources = _counts(source for source, _ in pairs)
    targets = _counts(target for _, target in pairs)
    both = Counter(
        pair
        for source, target in pairs
        for pair in itertools.product(source & sources.keys(), target & targets.keys())
    )
    dice = {(s, t): 2 * rows / (sources[s] + targets[t]) for (s, t), rows in both.items()}
    return {pair: value for pair, value in dice.items() if value >= MIN_DICE}


def translated_words(source: str, target: str, lexicon: Lexicon) -> list[tuple[str, str]]:
    """Return the pairs of words that are each other's best translation; each occurs once."""
    sources, targets = (Counter(words_of(text)) for text in (source, target))
    translated = [
        (lexicon[pair], pair)
        for pair in itertools.product(sources, targets)
        if pair in lexicon and sources[pair[0]] == targets[pair[1]] == 1
    ]
    best_of_source = {pair[0]: pair for _, pair in sorted(translated)}
    best_of_target = {pair[1]: pair for _, pair in sorted(translated)}
    return [pair for pair in best_of_source.values() if best_of_target[pair[1]] == pair]


def words_of(text: str) -> list[str]:
    """Return the words of a text without the punctuation around them."""
    return [word for token in text.split() if (word := token.strip(PUNCTUATION))]


def _counts(rows: Iterable[set[str]]) -> dict[str, int]:
    """Count the rows of each word that is neither too rare nor too frequent."""
    rows = list(rows)
    counts = Counter(itertools.chain.from_iterable(rows))
    most = MAX_SHARE * len(rows)
    return {word: count for word, count in counts.items() if MIN_ROWS <= count <= most}
