"""The tour's printed figures against a Transformer written in NumPy from the same weights, and its searches by hand."""

import contextlib
import io
import itertools
import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from tfformer import Transformer

ROOT = Path(__file__).parent.parent
SCRIPT, NOTEBOOK = ROOT / "scripts" / "tour.py", ROOT / "docs" / "tour.ipynb"
STEP = re.compile(r"(.+?)   \((.*); ([\dx ]+|one number)\)")
SOURCE, TARGET, LABELS = [4, 5, 3], [2, 6, 7], [6, 7, 3]
LOOK_AHEAD = np.tri(3, dtype=bool)


def snapshot(layer) -> dict[str, np.ndarray]:
    """A layer's weights by the names of the paper."""
    found = {"W1": layer.feed_forward.inner.kernel, "b1": layer.feed_forward.inner.bias}
    found |= {"W2": layer.feed_forward.outer.kernel, "b2": layer.feed_forward.outer.bias}
    for kind in ("self_attention", "cross_attention"):
        if attention := getattr(layer, kind, None):
            found |= {f"{kind} Q": attention.query.kernel, f"{kind} KV": attention.key_value.kernel}
            found[f"{kind} O"] = attention.output_projection.kernel
    return {name: np.array(weight, np.float64) for name, weight in found.items()}


@pytest.fixture(scope="module")
def tour():
    """What the script prints, its variables, and the weights from before they learned."""
    weights = {}

    def remember_and_compile(model, *arguments, **settings):
        weights["E"] = np.array(model.source_embedding.embeddings, np.float64)
        weights["encoder"] = snapshot(model.encoder.layers[0])
        weights["decoder"] = snapshot(model.decoder.layers[0])
        compile_(model, *arguments, **settings)

    compile_, printed = Transformer.compile, io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(Transformer, "compile", remember_and_compile)
        variables = runpy.run_path(str(SCRIPT))
    return printed.getvalue(), variables, weights


@pytest.fixture(scope="module")
def printed(tour) -> dict[str, list[np.ndarray]]:
    """The numbers below each step's title, in its shape; a title may stand over several steps."""
    found = {}
    for paragraph in tour[0].split("\n\n"):
        first, *lines = paragraph.strip("\n").split("\n")
        if title := STEP.fullmatch(first):
            numbers = [[float(n) for n in re.findall(r"-?\d+\.\d\d\b|-inf", line)] for line in lines]
            shape = () if title[3] == "one number" else tuple(map(int, title[3].split(" x ")))
            found.setdefault(title[1], []).append(np.reshape([n for line in numbers for n in line], shape))
    return found


def softmax(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def norm(x):
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-6)


def heads(x):
    return np.stack([x[:, :2], x[:, 2:]])


def attend(weights, kind, x, memory, allowed=True):
    """Every step of eq. 1 and section 3.2.2, by name."""
    q, k, v = (
        heads(part) for part in (x @ weights[f"{kind} Q"], *np.split(memory @ weights[f"{kind} KV"], 2, axis=-1))
    )
    scores = q @ k.transpose(0, 2, 1)
    scaled = np.where(allowed, scores / np.sqrt(2), -np.inf)
    head = softmax(scaled) @ v
    concatenated = np.hstack([head[0], head[1]])
    output = concatenated @ weights[f"{kind} O"]
    names = ("q", "k", "v", "scores", "scaled", "weights", "head", "concatenated", "output")
    return dict(zip(names, (q, k, v, scores, scaled, softmax(scaled), head, concatenated, output), strict=True))


def encoding():
    """Section 3.5 written out for d_model = 4: 10000^(2/4) is 100."""
    return np.array([[np.sin(p), np.cos(p), np.sin(p / 100), np.cos(p / 100)] for p in range(3)])


def feed_forward(weights, x):
    inner = np.maximum(0, x @ weights["W1"] + weights["b1"])
    return inner, inner @ weights["W2"] + weights["b2"]


@pytest.fixture(scope="module")
def expected(tour) -> dict[str, list[np.ndarray]]:
    """Each printed step, computed again."""
    _, _, weights = tour
    E, encoder, decoder = weights["E"], weights["encoder"], weights["decoder"]
    x = 2 * E[SOURCE] + encoding()
    a = attend(encoder, "self_attention", x, x)
    normalized = norm(x + a["output"])
    inner, outer = feed_forward(encoder, normalized)
    memory = norm(normalized + outer)
    y = 2 * E[TARGET] + encoding()
    b = attend(decoder, "self_attention", y, y, LOOK_AHEAD)
    y2 = norm(y + b["output"])
    c = attend(decoder, "cross_attention", y2, memory)
    y3 = norm(y2 + c["output"])
    y4 = norm(y3 + feed_forward(decoder, y3)[1])
    logits = y4 @ E.T
    p = softmax(logits)
    smoothed = np.full((3, 8), 0.1 / 8)
    smoothed[range(3), LABELS] += 0.9
    losses = -(smoothed * np.log(p)).sum(axis=-1)
    return {
        "E, the embedding of each word": [E],
        "E[id] * sqrt(4)": [2 * E[SOURCE]],
        "PE: sin(pos), cos(pos), sin(pos/100), cos(pos/100)": [encoding()],
        "x = E[id] * sqrt(d_model) + PE": [x],
        "Q = x W_Q": [a["q"]],
        "K = x W_K": [a["k"]],
        "V = x W_V": [a["v"]],
        "Q K^T: a row asks, a column answers": [a["scores"]],
        "Q K^T / sqrt(d_k), d_k = 4/2 = 2": [a["scaled"]],
        "softmax: the weights, each row sums to 1": [a["weights"]],
        "head = softmax(Q K^T / sqrt(d_k)) V": [a["head"]],
        "Concat(head 1, head 2)": [a["concatenated"]],
        "MultiHead(Q, K, V) = Concat(head 1, head 2) W_O": [a["output"]],
        "x + MultiHead(x)": [x + a["output"]],
        "LayerNorm(x + MultiHead(x))": [normalized],
        "max(0, x W1 + b1)": [inner],
        "FFN(x) = max(0, x W1 + b1) W2 + b2": [outer],
        "memory = LayerNorm(x + FFN(x)): what the encoder hands over": [memory],
        "padding mask of 'I sleep </s>' and 'sleep </s> <pad>'; 1: allowed": [[[1, 1, 1], [1, 1, 0]]],
        "look-ahead mask; 1: allowed": [LOOK_AHEAD],
        "y = E[id] * sqrt(d_model) + PE": [y],
        "Q K^T / sqrt(d_k), masked": [b["scaled"]],
        "softmax: nobody looks ahead": [b["weights"]],
        "LayerNorm(y + MultiHead(y))": [y2],
        "cross-attention: a row is a target word, a column a source word": [c["weights"]],
        "LayerNorm(y + MultiHead(y, memory))": [y3],
        "LayerNorm(y + FFN(y))": [y4],
        "logits = y E^T": [logits],
        "softmax(logits): a row is P(next word)": [p],
        "what the model should say: 0.9 one-hot + 0.1 / 8": [smoothed],
        "cross-entropy of each word, in nats": [losses],
        "their mean, as SmoothedCrossEntropy has it: the loss": [losses.mean()],
        "perplexity = e^(mean of -log P(word)), without smoothing": [np.prod(p[range(3), LABELS]) ** (-1 / 3)],
    }


def test_every_printed_figure_is_numpys(printed, expected):
    assert printed.keys() == expected.keys()
    for name, arrays in expected.items():
        for shown, computed in zip(printed[name], arrays, strict=True):
            np.testing.assert_allclose(shown, computed, atol=0.0051, err_msg=name)


def test_every_step_names_its_place_in_the_paper(tour):
    steps = [match for line in tour[0].splitlines() if (match := STEP.fullmatch(line))]
    assert len(steps) > 30
    for step in steps:
        assert re.match(r"sections? [3-6]\.", step[2]), step[0]


def test_the_weights_can_be_multiplied_by_hand(tour):
    for part in (tour[2]["encoder"], tour[2]["decoder"], {"E": tour[2]["E"]}):
        for name, weight in part.items():
            np.testing.assert_allclose(weight, np.round(weight, 1), atol=1e-6, err_msg=name)


def test_the_notebook_is_the_script_and_what_it_prints(tour):
    """Up to the training, whose last digits may differ from machine to machine; scripts/notebook.sh makes it anew."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    text = SCRIPT.read_text(encoding="utf-8")
    parts = [part.partition("\n") for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]]
    wanted = [re.sub(r"^# ?", "", body, flags=re.MULTILINE) if kind else body for kind, _, body in parts]
    assert ["".join(cell["source"]) for cell in cells] == [body.strip("\n") for body in wanted]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert all((output["output_type"], output["name"]) == ("stream", "stdout") for output in outputs)
    shown = "".join(line for output in outputs for line in output["text"])
    assert shown.partition("loss before")[0] == tour[0].partition("loss before")[0]
    assert "beam search   (beam 2) finds  ich schlafe </s>" in shown


def log_prob(model, ids) -> float:
    """Of a whole translation, by teacher forcing and NumPy."""
    logits = model({"source": np.array([SOURCE]), "target": np.array([[2, *ids[:-1]]])})[0].numpy()
    return float(np.log(softmax(logits)[range(len(ids)), ids]).sum())


def test_beam_search_finds_the_likeliest_of_all_and_greedy_search_does_not(tour):
    text, variables, _ = tour
    model = variables["model"]
    words = [i for i in range(8) if i != 3]
    sentences = [(*ids, 3) for length in range(3) for ids in itertools.product(words, repeat=length)]
    rows = {ids: log_prob(model, ids) for ids in sentences}
    best = max(rows, key=rows.get)
    assert best == (6, 7, 3)
    [(greedy, greedy_probability)], [(beam, beam_probability), _] = variables["greedy"], variables["beam"]
    assert beam == ["ich", "schlafe", "</s>"] and beam_probability == pytest.approx(np.exp(rows[best]), abs=1e-3)
    ids = [variables["WORDS"].index(word) for word in greedy]
    assert greedy[0] == "schlafe" and greedy_probability == pytest.approx(np.exp(log_prob(model, ids)), abs=1e-3)
    assert greedy_probability < beam_probability - 0.03
    assert f"finds  ich schlafe </s>  with probability {beam_probability:.2f}" in text


def test_the_model_has_learned_the_shares_of_the_text(tour):
    _, variables, _ = tour
    for ids, count in variables["TRANSLATIONS"].items():
        assert np.exp(log_prob(variables["model"], [*ids, 3])) == pytest.approx(count / 10, abs=0.05)
    assert variables["after"] < variables["before"]
