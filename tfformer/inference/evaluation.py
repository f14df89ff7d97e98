"""BLEU and chrF of translations, by sacreBLEU. Knows no model and no training."""

from collections.abc import Sequence


def scores(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float | str]:
    """Corpus BLEU (13a, cased; Post 2018) and chrF2, each 0 to 100, and the signature of how BLEU was measured."""
    import sacrebleu

    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} translations cannot be scored against {len(references)} references"
        )
    bleu = sacrebleu.BLEU()
    return {
        "bleu": bleu.corpus_score(hypotheses, [references]).score,
        "chrf": sacrebleu.CHRF().corpus_score(hypotheses, [references]).score,
        "signature": str(bleu.get_signature()),
    }
