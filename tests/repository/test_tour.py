"""Compare the tour's printed figures with NumPy.

The Transformer has the same weights; the searches are written out by hand.
"""

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

ROOT = Path(__file__).parents[2]
SCRIPT, NOTEBOOK = ROOT / "scripts" / "tour.py", ROOT / "docs" / "tour.ipynb"
STEP = re.compile(r"(.+?)   \((.*); ([\dx ]+|one number)\)")
SOURCE, TARGET, LABELS = [4, 5, 3], [2, 6, 7], [6, 7, 3]
LOOK_AHEAD = np.tri(3, dtype=bool)


def snapshot(layer) -> dict[str, np.ndarray]:
    """Return a layer's weights by the names of the paper."""
    kernels = {"W1": layer.feed_forward.inner.kernel, "b1": layer.feed_forward.inner.bias}
    kernels |= {"W2": layer.feed_forward.outer.kernel, "b2": layer.feed_forward.outer.bias}
    for kind in ("self_attention", "cross_attention"):
        if attention := getattr(layer, kind, None):
            kernels[f"{kind} Q"] = attention.query.kernel
            kernels[f"{kind} KV"] = attention.key_value.kernel
            kernels[f"{kind} O"] = attention.output_projection.kernel
    return {name: np.array(weight, np.float64) for name, weight in kernels.items()}


@pytest.fixture(scope="module")
def tour():
    """The output of the script, its variables, and the weights before training."""
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
    """The numbers below each title, in their shape; a title may stand above several steps."""
    arrays = {}
    for paragraph in tour[0].split("\n\n"):
        first, *lines = paragraph.strip("\n").split("\n")
        if title := STEP.fullmatch(first):
            numbers = re.findall(r"-?\d+\.\d\d\b|-inf", "\n".join(lines))
            shape = () if title[3] == "one number" else tuple(map(int, title[3].split(" x ")))
            array = np.reshape(np.array(numbers, float), shape)
            arrays.setdefault(title[1], []).append(array)
    return arrays


def test_the_pictures_show_the_weights_that_are_printed(tour):
    pattern = r"\nsoftmax\(s\) = [^\n]*\n(.*?)\n\nThe same weights[^\n]*\n(.*?)\n\n"
    pictures = re.findall(pattern, tour[0], re.DOTALL)
    assert len(pictures) == 3  # encoder, decoder, cross-attention
    for numbers, picture in pictures:
        weights = map(float, re.findall(r"\d\.\d\d", numbers))
        squares = re.findall(r"([·░▒▓█])\1{3}", picture)
        assert squares == ["·░▒▓█"[round(4 * weight)] for weight in weights]


def softmax(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def norm(x):
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-6)


def heads(x):
    return np.stack([x[:, :2], x[:, 2:]])


def attend(weights, kind, x, memory, allowed=True):
    """Return every step of equation 1 and section 3.2.2, by name."""
    w_q, w_o = weights[f"{kind} Q"], weights[f"{kind} O"]
    w_k, w_v = np.split(weights[f"{kind} KV"], 2, axis=-1)
    steps = {"w_q": heads(w_q), "w_k": heads(w_k), "w_v": heads(w_v), "w_o": w_o}
    steps |= {"q": heads(x @ w_q), "k": heads(memory @ w_k), "v": heads(memory @ w_v)}
    steps["scores"] = steps["q"] @ steps["k"].transpose(0, 2, 1)
    steps["scaled"] = steps["scores"] / np.sqrt(2)
    steps["masked"] = np.where(allowed, steps["scaled"], -np.inf)
    steps["weights"] = softmax(steps["masked"])
    steps["head"] = steps["weights"] @ steps["v"]
    steps["concatenated"] = np.hstack([steps["head"][0], steps["head"][1]])
    return steps | {"output": steps["concatenated"] @ w_o}


def encoding():
    """Section 3.5 for d_model = 4: 10000^(2/4) is 100."""
    return np.array([[np.sin(p), np.cos(p), np.sin(p / 100), np.cos(p / 100)] for p in range(3)])


def feed_forward(weights, x):
    inner = np.maximum(0, x @ weights["W1"] + weights["b1"])
    return inner, inner @ weights["W2"] + weights["b2"]


@pytest.fixture(scope="module")
def expected(tour) -> dict[str, list[np.ndarray]]:
    """Each printed step, computed in NumPy."""
    _, _, weights = tour
    embeddings = weights["E"]
    encoder = weights["encoder"]
    decoder = weights["decoder"]
    x = 2 * embeddings[SOURCE] + encoding()
    a = attend(encoder, "self_attention", x, x)
    x2, e = norm(x + a["output"]), {}
    e["inner"], e["outer"] = feed_forward(encoder, x2)
    memory = norm(x2 + e["outer"])
    y = 2 * embeddings[TARGET] + encoding()
    b = attend(decoder, "self_attention", y, y, LOOK_AHEAD)
    y2 = norm(y + b["output"])
    c = attend(decoder, "cross_attention", y2, memory)
    y3, d = norm(y2 + c["output"]), {}
    d["inner"], d["outer"] = feed_forward(decoder, y3)
    y4 = norm(y3 + d["outer"])
    logits = y4 @ embeddings.T
    p = softmax(logits)
    smoothed = np.full((3, 8), 0.1 / 8)
    smoothed[range(3), LABELS] += 0.9
    losses = -(smoothed * np.log(p)).sum(axis=-1)

    def of_each_attention(name):
        return [attention[name] for attention in (a, b, c)]

    return {
        "E, the embedding of each word": [embeddings],
        "E[id] * sqrt(4)": [2 * embeddings[SOURCE]],
        "PE: sin(pos), cos(pos), sin(pos/100), cos(pos/100)": [encoding()],
        "x = E[id] * sqrt(d_model) + PE": [x],
        "W_Q": of_each_attention("w_q"),
        "W_K": of_each_attention("w_k"),
        "W_V": of_each_attention("w_v"),
        "Q = x W_Q": [a["q"]],
        "K = x W_K": [a["k"]],
        "V = x W_V": [a["v"]],
        "Q = y W_Q": [b["q"], c["q"]],
        "K = y W_K": [b["k"]],
        "V = y W_V": [b["v"]],
        "K = memory W_K": [c["k"]],
        "V = memory W_V": [c["v"]],
        "Q K^T: a row asks, a column answers": of_each_attention("scores"),
        "s = Q K^T / sqrt(d_k), d_k = 4/2 = 2": of_each_attention("scaled"),
        "s, and -inf where the mask has 0": [b["masked"]],
        "softmax(s) = e^s / (sum of e^s in its row)": of_each_attention("weights"),
        "head = softmax(s) V": of_each_attention("head"),
        "Concat(head 1, head 2)": of_each_attention("concatenated"),
        "W_O": of_each_attention("w_o"),
        "MultiHead(Q, K, V) = Concat(head 1, head 2) W_O": of_each_attention("output"),
        "r = x + MultiHead(x)": [x + a["output"], y + b["output"]],
        "r = x + MultiHead(x, memory)": [y2 + c["output"]],
        "r = x + FFN(x)": [x2 + e["outer"], y3 + d["outer"]],
        "LayerNorm(r) = (r - mean) / sqrt(variance), the next x": [x2, memory, y2, y3, y4],
        **{name: [encoder[name], decoder[name]] for name in ("W1", "b1", "W2", "b2")},
        "max(0, x W1 + b1)": [e["inner"], d["inner"]],
        "FFN(x) = max(0, x W1 + b1) W2 + b2": [e["outer"], d["outer"]],
        "padding mask of 'I sleep </s>' and 'sleep </s> <pad>': 1 where id != 0": [
            [[1, 1, 1], [1, 1, 0]]
        ],
        "look-ahead mask: 1 where column <= row": [LOOK_AHEAD],
        "y = E[id] * sqrt(d_model) + PE": [y],
        "logits = x E^T": [logits],
        "P(next word) = softmax(logits) of a row": [p],
        "smoothed = 0.9 one-hot + 0.1 / 8: what the model should say": [smoothed],
        "-(sum of smoothed * log P): the cross-entropy of each word, in nats": [losses],
        "loss = their mean, as SmoothedCrossEntropy computes it": [losses.mean()],
        "perplexity = e^(mean of -log P(word)), without smoothing": [
            np.prod(p[range(3), LABELS]) ** (-1 / 3)
        ],
    }


@pytest.mark.slow
def test_every_printed_figure_is_numpys(printed, expected):
    assert printed.keys() == expected.keys()
    for name, arrays in expected.items():
        assert len(printed[name]) == len(arrays), name
        for shown, computed in zip(printed[name], arrays, strict=True):
            np.testing.assert_allclose(shown, computed, atol=0.0051, err_msg=name)


@pytest.mark.slow
def test_every_step_names_its_place_in_the_paper(tour):
    steps = [match for line in tour[0].splitlines() if (match := STEP.fullmatch(line))]
    assert len(steps) > 30
    for step in steps:
        assert re.match(r"sections? [3-6]\.", step[2]), step[0]


@pytest.mark.slow
def test_the_weights_can_be_multiplied_by_hand(tour):
    for weights in (tour[2]["encoder"], tour[2]["decoder"], {"E": tour[2]["E"]}):
        for name, weight in weights.items():
            np.testing.assert_allclose(weight, np.round(weight, 1), atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_the_notebook_is_the_script_and_what_it_prints(tour):
    """The notebook contains the script and its output, up to the training.

    After the training, the last digits may differ between machines. scripts/notebook.sh writes the
    notebook.
    """
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    text = SCRIPT.read_text(encoding="utf-8")
    marked = [lines.partition("\n") for lines in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]]
    wanted = [
        re.sub(r"^# ?", "", body, flags=re.MULTILINE) if kind else body for kind, _, body in marked
    ]
    assert ["".join(cell["source"]) for cell in cells] == [body.strip("\n") for body in wanted]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert all(
        (output["output_type"], output["name"]) == ("stream", "stdout") for output in outputs
    )
    shown = "".join(line for output in outputs for line in output["text"])
    assert shown.partition("loss before")[0] == tour[0].partition("loss before")[0]
    assert "beam search   (beam 2) finds  ich schlafe </s>" in shown


def log_probs(model, rows) -> np.ndarray:
    """Return log p of whole translations of one length, by teacher forcing and NumPy."""
    target = np.array([[2, *ids[:-1]] for ids in rows])
    logits = model({"source": np.array([SOURCE] * len(rows)), "target": target}).numpy()
    log_p = np.log(softmax(logits.astype(np.float64)))
    return np.take_along_axis(log_p, np.array(rows)[..., np.newaxis], axis=-1).sum(axis=(1, 2))


@pytest.mark.slow
def test_beam_search_finds_the_likeliest_of_all_and_greedy_search_does_not(tour):
    text, variables, _ = tour
    model = variables["model"]
    words = [i for i in range(8) if i != 3]
    rows = {}
    for length in range(3):
        sentences = [(*ids, 3) for ids in itertools.product(words, repeat=length)]
        rows |= dict(zip(sentences, log_probs(model, sentences), strict=True))
    best = max(rows, key=rows.get)
    assert best == (6, 7, 3)
    greedy = variables["greedy"].split()
    beam = variables["beam"].split()
    greedy_probability = variables["p_greedy"]
    beam_probability = variables["p_beam"]
    assert beam == ["ich", "schlafe", "</s>"]
    assert beam_probability == pytest.approx(np.exp(rows[best]), abs=1e-3)
    ids = [variables["WORDS"].index(word) for word in greedy]
    assert greedy[0] == "schlafe"
    assert greedy_probability == pytest.approx(np.exp(log_probs(model, [ids])[0]), abs=1e-3)
    assert greedy_probability < beam_probability - 0.03
    assert f"finds  ich schlafe </s>  with probability {beam_probability:.2f}" in text


@pytest.mark.slow
def test_the_model_has_learned_the_shares_of_the_text(tour):
    _, variables, _ = tour
    for ids, count in variables["TRANSLATIONS"].items():
        [log_p] = log_probs(variables["model"], [[*ids, 3]])
        assert np.exp(log_p) == pytest.approx(count / 10, abs=0.05)
    assert variables["after"] < variables["before"]
