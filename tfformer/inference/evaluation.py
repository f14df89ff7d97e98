"""BLEU and chrF of translations, computed by sacreBLEU."""

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfformer.config import Config
from tfformer.text.languages import base_language

if TYPE_CHECKING:
    import sacrebleu

# SacreBLEU's tokenizers, best first, for languages that need another one than 13a, each with the
# module that it needs.
TOKENIZERS_OF_LANGUAGES: dict[tuple[str, ...], list[tuple[str, str | None]]] = {
    ("zh", "yue"): [("zh", None)],
    ("ja",): [("ja-mecab", "MeCab"), ("char", None)],
    ("ko",): [("ko-mecab", "mecab_ko"), ("char", None)],
    ("th", "lo", "km", "my", "bo", "dz"): [("char", None)],
}


def scores(
    hypotheses: Sequence[str], *references: Sequence[str], tokenize: str = "13a"
) -> dict[str, float | str]:
    """Score N translations against N references as raw text, or several lists of references.

    Returns corpus BLEU (cased; Post 2018) as "bleu" and chrF2 (Popović 2015) as "chrf", each 0 to
    100, and sacreBLEU's "signature" of the BLEU score. `tokenize` is described at `bleu_tokenizer`.
    """
    import sacrebleu

    for reference in references:
        if len(hypotheses) != len(reference):
            raise ValueError(
                f"{len(hypotheses)} translations cannot be scored against {len(reference)} "
                "references"
            )
    bleu = bleu_metric(tokenize)
    return {
        "bleu": bleu.corpus_score(hypotheses, references).score,
        "chrf": sacrebleu.CHRF().corpus_score(hypotheses, references).score,
        "signature": str(bleu.get_signature()),
    }


def check_bleu(config: Config) -> None:
    """Raise ValueError, before any work is done, if a recipe's BLEU tokenizer is not installed."""
    bleu_metric(bleu_tokenizer(config))


def bleu_tokenizer(config: Config, language: str | None = None) -> str:
    """Return the name of SacreBLEU's tokenizer for the target of a recipe.

    With `training.bleu_tokenizer: auto` the last of `data.languages`, or else `language`, decides.
    The default is 13a, for languages with spaces between words and if no languages are named.
    Japanese and Korean are scored by characters if the library of their tokenizer is not installed.
    """
    if config.training.bleu_tokenizer != "auto":
        return config.training.bleu_tokenizer
    target = (config.data.languages or [language or ""])[-1]
    code = base_language(target)
    for codes, tokenizers in TOKENIZERS_OF_LANGUAGES.items():
        if code in codes:
            return next(
                name
                for name, module in tokenizers
                if module is None or importlib.util.find_spec(module)
            )
    return "13a"


def bleu_metric(tokenize: str) -> "sacrebleu.BLEU":
    """Return sacreBLEU's BLEU; a ValueError says how to install what its tokenizer needs."""
    import sacrebleu

    try:
        return sacrebleu.BLEU(tokenize=tokenize)
    except (ImportError, RuntimeError) as error:
        extra = tokenize.partition("-")[0]
        raise ValueError(
            f"BLEU's tokenizer {tokenize} needs a library; pip install 'sacrebleu[{extra}]', or "
            "set training.bleu_tokenizer=char"
        ) from error
    except OSError as error:
        raise ValueError(
            f"BLEU's tokenizer {tokenize} needs a model, which sacreBLEU could not fetch "
            f"({error}); connect to a network once, or set training.bleu_tokenizer=char"
        ) from error
