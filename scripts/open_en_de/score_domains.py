"""Score translations of the test set by domain.

Usage: scripts/open_en_de/score_domains.py DATA TRANSLATION ...

DATA contains test.tsv.gz and test.domains.txt, which has the name and the number of lines of each
domain, in the order of the text. A TRANSLATION has a line per sentence. The table has sacreBLEU's
cased BLEU (13a) and chrF2; the last line is JSON.
"""

import itertools
import json
import sys
from pathlib import Path

from tfformer.data.sources import read_lines, read_pairs
from tfformer.inference.evaluation import scores


def main(data: str, *translations: str) -> None:
    """Print a table with a row per domain and two columns per translation."""
    references = [target for _, target in read_pairs("test.tsv.gz", data)]
    domains = domain_lines(Path(data, "test.domains.txt"), len(references))
    if len({Path(file).stem for file in translations}) < len(translations):
        sys.exit("two translations have the same name; rename one of them")
    texts = {Path(file).stem: list(read_lines(Path(file))) for file in translations}
    for name, text in texts.items():
        if len(text) != len(references):
            sys.exit(f"{name} has {len(text):,} lines, but the test set has {len(references):,}")
    measured: dict[str, dict[str, list[float]]] = {}
    print("| Domain | Sentences |" + "".join(f" {name}, BLEU | chrF2 |" for name in texts))
    print("|---" * (2 + 2 * len(texts)) + "|")
    for domain, lines in domains.items():
        row = f"| {domain} | {lines.stop - lines.start:,} |"
        for name, text in texts.items():
            found = scores(text[lines], references[lines])
            bleu, chrf = (round(float(found[metric]), 2) for metric in ("bleu", "chrf"))
            measured.setdefault(name, {})[domain] = [bleu, chrf]
            row += f" {bleu:.1f} | {chrf:.1f} |"
        print(row)
    print(json.dumps(measured))


def domain_lines(file: Path, size: int) -> dict[str, slice]:
    """Return the lines of each domain, and of the whole text as `all`."""
    names, counts = zip(*map(str.split, file.read_text(encoding="utf-8").splitlines()), strict=True)
    bounds = itertools.pairwise(itertools.accumulate(map(int, counts), initial=0))
    domains = {name: slice(*pair) for name, pair in zip(names, bounds, strict=True)}
    if sum(map(int, counts)) != size:
        sys.exit(f"{file} counts {sum(map(int, counts)):,} lines, but the test set has {size:,}")
    return domains | {"all": slice(0, size)}


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
