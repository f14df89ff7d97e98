#!/usr/bin/env python
"""Score a Multi30k run on the test set in the two flavours that people publish: scripts/multi30k/score.py RUN DATA

sacreBLEU 13a, cased, on the text as it is; and what most papers print, lower-cased and tokenised BLEU, for which our
text goes through Moses' normalisation and tokenisation (sacremoses) and is scored against the references of the task
that are so already. Greedy and beam search. The last line is JSON. Needs: pip install -e '.[multi30k]'
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from tfformer.cli.verbs import import_tensorflow

import_tensorflow()

import sacrebleu  # noqa: E402
from sacremoses import MosesPunctNormalizer, MosesTokenizer  # noqa: E402

from tfformer import Translator  # noqa: E402
from tfformer.data.sources import read_lines  # noqa: E402
from tfformer.inference.evaluation import scores  # noqa: E402
from tfformer.run_directory import Run  # noqa: E402

TEST = "test_2016_flickr"


def main(run: str, data: str) -> None:
    translator = Translator.load(run)
    source, target = Run.open(run).config.data.languages
    sentences, references, tokenised = (
        list(read_lines(Path(data, f"{TEST}.{name}.gz")))
        for name in (source, target, f"lc.norm.tok.{target}")
    )
    moses = moses_tokeniser(target)
    same = sum(map(str.__eq__, map(moses, references), tokenised))
    print(f"Moses' tokens of {same:,} of {len(references):,} references are those of the task")
    found = {"parameters": translator.model.count_params(), "moses_agrees": same}
    for name, beam_size in (
        ("greedy", 1),
        (f"beam {translator.decoding.beam_size}", translator.decoding.beam_size),
    ):
        translations = translator.translate(sentences, beam_size=beam_size)
        cased = scores(translations, references)
        lowered = sacrebleu.BLEU(tokenize="none", force=True).corpus_score(
            list(map(moses, translations)), [tokenised]
        )
        found[name] = {
            "13a": round(cased["bleu"], 2),
            "chrf": round(cased["chrf"], 2),
            "tok_lc": round(lowered.score, 2),
        }
        print(
            f"{name}: {cased['bleu']:.2f} ({cased['signature']}), tokenised lower-cased {lowered.score:.2f}"
        )
    print(json.dumps(found))


def moses_tokeniser(language: str) -> Callable[[str], str]:
    """Lower-cased, its punctuation normalised, tokenised and escaped, as the task's own files are."""
    normalise, tokenise = (
        MosesPunctNormalizer(lang=language).normalize,
        MosesTokenizer(lang=language).tokenize,
    )
    return lambda sentence: tokenise(normalise(sentence.lower()), return_str=True, escape=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
