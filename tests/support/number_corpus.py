"""A small parallel corpus: the same numbers in English and German."""

import random
from pathlib import Path

NUMBERS = {
    "en": ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
    "de": ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"],
}


def write_number_corpus(folder: Path, lines: dict[str, int], greatest: int) -> None:
    """Write a file for each split and language, such as train.en.

    Args:
        folder: The folder to write into.
        lines: The number of lines of each split.
        greatest: The greatest number, at most ten; a line contains two to six numbers.
    """
    draw = random.Random(1)
    for split, count in lines.items():
        rows = [_drawn(draw, greatest) for _ in range(count)]
        for language, words in NUMBERS.items():
            text = "".join(_line(row, words) for row in rows)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")


def _drawn(draw: random.Random, greatest: int) -> list[int]:
    return [draw.randrange(greatest) for _ in range(draw.randint(2, 6))]


def _line(row: list[int], words: list[str]) -> str:
    return " ".join(words[number] for number in row) + "\n"
