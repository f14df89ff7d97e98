#!/usr/bin/env python
"""Score a Multi30k run on the test set with the two published variants of BLEU.

Usage: scripts/multi30k/score.py RUN DATA

The first is cased sacreBLEU 13a on the original text. The second is lower-cased, tokenised BLEU, as
in most papers: the translations are normalised and tokenised with Moses' rules (sacremoses) and
scored against the task's tokenised references. Both are computed for greedy and for beam search.
The last line is JSON. Needs: pip install -e '.[multi30k]'
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

import sacrebleu  # noqa: E402
from sacremoses import MosesPunctNormalizer, MosesTokenizer  # noqa: E402

from tfformer import Translator  # noqa: E402
from tfformer.data.sources import read_lines  # noqa: E402
from tfformer.inference.evaluation import scores  # noqa: E402
from tfformer.run_directory import Run  # noqa: E402

TEST = "test_2016_flickr"


def main(run: str, data: str) -> None:
    """Print the scores of the run on the test set in the folder `data`."""
    translator = Translator.load(run)
    source, target = Run.open(run).config.data.languages or ("en", "de")
    sentences = test_lines(data, source)
    references = test_lines(data, target)
    tokenised = test_lines(data, f"lc.norm.tok.{target}")
    moses = moses_tokeniser(target)
    same = sum(map(str.__eq__, map(moses, references), tokenised))
    print(f"Moses' tokens equal the task's in {same:,} of {len(references):,} references")
    measured = {"parameters": translator.model.count_params(), "moses_agrees": same}
    default = translator.decoding.beam_size
    for name, beam_size in (("greedy", 1), (f"beam {default}", default)):
        hypotheses = translator.translate(sentences, beam_size=beam_size)
        cased = scores(hypotheses, references)
        bleu = sacrebleu.BLEU(tokenize="none", force=True)
        lowered = bleu.corpus_score([moses(hypothesis) for hypothesis in hypotheses], [tokenised])
        measured[name] = {
            "13a": round(float(cased["bleu"]), 2),
            "chrf": round(float(cased["chrf"]), 2),
            "tok_lc": round(lowered.score, 2),
        }
        first = f"{cased['bleu']:.2f} ({cased['signature']})"
        print(f"{name}: {first}, tokenised lower-cased {lowered.score:.2f}")
    print(json.dumps(measured))


def test_lines(data: str, name: str) -> list[str]:
    """Return the lines of one file of the test set."""
    return list(read_lines(Path(data, f"{TEST}.{name}.gz")))


def moses_tokeniser(language: str) -> Callable[[str], str]:
    """Return a function that lower-cases, normalises, tokenises and escapes a text."""
    normalise = MosesPunctNormalizer(lang=language).normalize
    tokenise = MosesTokenizer(lang=language).tokenize
    return lambda sentence: tokenise(normalise(sentence.lower()), return_str=True, escape=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (ValueError, OSError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
