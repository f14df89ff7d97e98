"""The verb `generate`."""

import click

from tfformer.cli.options import AT_LEAST_1, examples, run
from tfformer.cli.terminal import load_tensorflow


@click.command(
    epilog=examples('tfformer generate runs/lm --prefix "The animal" --count 5 --seed 1')
)
@run
@click.option("--prefix", default="", metavar="TEXT", help="Beginning of each text.")
@click.option("--count", type=AT_LEAST_1, default=1, metavar="N", help="Number of texts.")
@click.option(
    "--seed", type=int, default=1, metavar="S", help="The same seed gives the same texts."
)
@click.option(
    "--temperature",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    metavar="T",
    help="Below 1 for more probable texts, above 1 for more varied texts.",
)
@click.option(
    "--top-k",
    type=click.IntRange(min=0),
    default=0,
    metavar="K",
    help="Draw each token from the K most probable; 1 is greedy, 0 draws from all.",
)
@click.option(
    "--top-p",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=1.0,
    metavar="P",
    help="Draw each token from the fewest tokens whose probabilities sum to at least P.",
)
def generate(
    run: str, prefix: str, count: int, seed: int, temperature: float, top_k: int, top_p: float
) -> None:
    """Continue text with a language model; print one text per line.

    RUN is the run directory of a language model.
    """
    from tfformer.config import LARGEST_SEED

    if not 0 <= seed <= LARGEST_SEED:
        raise ValueError(f"--seed {seed} must be from 0 to {LARGEST_SEED}")
    load_tensorflow()
    from tfformer.inference.generator import Generator

    texts = Generator.load(run).sample([prefix] * count, seed, temperature, top_k, top_p)
    for continuation in texts:
        print(continuation.text)
