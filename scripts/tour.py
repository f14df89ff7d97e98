# %% [markdown]
# # The Transformer on two words
#
# "I sleep" goes through a Transformer that is small enough to follow by hand: vectors of 4 numbers,
# 2 heads, one layer on each side. Every step is taken with the layers of this package, and every
# line names its place in "Attention Is All You Need" (Vaswani et al. 2017). The weights are random
# and have one decimal, and each is shown before it is used, so any product can be checked.
#
# The lesson is available as a script, `python scripts/tour.py`, and as a notebook,
# `docs/tour.ipynb`.

# %%
from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()  # without TensorFlow's own messages

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.layers import Layer
from numpy.typing import ArrayLike

from tfformer import SmoothedCrossEntropy, Transformer, look_ahead_mask, padding_mask
from tfformer.inference.beam_search import beam_search
from tfformer.inference.search import greedy_search
from tfformer.model.positions import positional_encoding
from tfformer.special_ids import END_ID, PAD_ID, START_ID

WORDS = ["<pad>", "<unk>", "<s>", "</s>", "I", "sleep", "ich", "schlafe"]
D_MODEL = 4
HEADS = 2
D_K = D_MODEL // HEADS
D_FF = 6
SMOOTHING = 0.1


def words(ids: Sequence[int]) -> list[str]:
    """Return the words of some ids."""
    return [WORDS[i] for i in ids]


# %% [markdown]
# ## The model
#
# One matrix is at once the source embedding, the target embedding and the output projection
# (section 3.4). The paper gives the attention projections no bias.

# %%
model = Transformer(
    len(WORDS), len(WORDS), num_layers=1, d_model=D_MODEL, num_heads=HEADS, d_ff=D_FF, dropout=0.0,
    tie_embeddings="all", use_bias=False,
)  # fmt: skip
random = np.random.default_rng(3)
for weight in model.weights:
    if weight.name not in ("gamma", "beta"):  # of normalisation, which begins with gain 1, bias 0
        weight.assign(np.round(random.normal(scale=0.6, size=weight.shape), 1) + 0.0)  # no -0.0

source = [WORDS.index("I"), WORDS.index("sleep"), END_ID]
target = [START_ID, 6, 7]
labels = [6, 7, END_ID]
print("source:", words(source), source)
print("what the decoder reads: ", words(target), target)
print("what it should write:   ", words(labels), labels)

# %% [markdown]
# Every step is printed by one function, with its section of the paper and its shape. The matrix E
# comes first.


# %%
def show(
    step: str,
    section: str,
    values: ArrayLike,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> None:
    """Print a step, its section of the paper, its shape and its numbers.

    Row and column names are printed beside the numbers.
    """
    values = np.asarray(values)
    shape = " x ".join(map(str, values.shape)) or "one number"
    print(f"\n{step}   ({section}; {shape})")
    heads = values if values.ndim == 3 else [np.atleast_2d(values)]
    for number, head in enumerate(heads, start=1):
        if len(heads) > 1 or columns:
            name = f"  head {number}" if len(heads) > 1 else ""
            print(f"{name:<14}" + "".join(f"{column:>8}" for column in columns))
        for name, row in zip(rows or [""] * len(head), head, strict=True):
            print(f"    {name:<10}" + "".join(f"{number:8.2f}" for number in row))


show("E, the embedding of each word", "section 3.4", model.source_embedding.embeddings, WORDS)

# %% [markdown]
# ## Encoder: embedding and position
#
# A word becomes its row of E, times the square root of d_model. The position of the word is added
# to it, as sines and cosines.

# %%
embedding = model.source_embedding(tf.constant([source]))
show(f"E[id] * sqrt({D_MODEL})", "section 3.4", embedding[0], words(source))

positions = positional_encoding(tf.range(len(source)), D_MODEL)
show("PE: sin(pos), cos(pos), sin(pos/100), cos(pos/100)", "section 3.5", positions, words(source))

x = model.encoder.add_positions(embedding)
show("x = E[id] * sqrt(d_model) + PE", "section 3.5", x[0], words(source))

# %% [markdown]
# ## Encoder: self-attention
#
# Each word has something to ask (query), to offer (key) and to give (value). Each head uses two
# columns of each. The decoder attends in the same steps, so a function computes them: `asking`
# contains the words of x, `answering` the words of memory.


# %%
def split_heads(x: ArrayLike) -> np.ndarray:
    """Split (T, D) into (H, T, D / H): each head has its own part of the columns."""
    return np.stack(np.split(np.asarray(x), HEADS, axis=-1))


def draw(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Draw attention weights (H, T, S): the larger a weight, the darker its square."""
    print("\nThe same weights as a picture, from 0 (light) to 1 (dark):")
    for number, head in enumerate(weights, start=1):
        print(f"  head {number:<7}" + "".join(f"{column:>8}" for column in columns))
        for name, row in zip(rows, head, strict=True):
            squares = ["·░▒▓█"[round(4 * weight)] * 4 for weight in row]
            print(f"    {name:<10}" + "".join(f"{square:>8}" for square in squares))


def attend(
    layer: Layer,
    x: tf.Tensor,
    memory: tf.Tensor,
    asking: Sequence[str],
    answering: Sequence[str],
    asked: str = "x",
    answer: str = "x",
    mask: tf.Tensor | None = None,
) -> np.ndarray:
    """Compute equation 1 and section 3.2.2 step by step.

    The inputs are x (1, T, D) and memory (1, S, D), the output is (T, D).
    """
    w_q = layer.query.kernel.numpy()
    w_k, w_v = np.split(layer.key_value.kernel.numpy(), 2, axis=1)
    w_o = layer.output_projection.kernel.numpy()
    for name, matrix in (("W_Q", w_q), ("W_K", w_k), ("W_V", w_v)):
        show(name, "section 3.2.2", split_heads(matrix))
    q = split_heads(x[0] @ w_q)
    k = split_heads(memory[0] @ w_k)
    v = split_heads(memory[0] @ w_v)
    show(f"Q = {asked} W_Q", "section 3.2.2", q, asking)
    show(f"K = {answer} W_K", "section 3.2.2", k, answering)
    show(f"V = {answer} W_V", "section 3.2.2", v, answering)

    scores = q @ np.swapaxes(k, 1, 2)
    show("Q K^T: a row asks, a column answers", "section 3.2.1, eq. 1", scores, asking, answering)
    scaled = scores / np.sqrt(D_K)
    name = f"s = Q K^T / sqrt(d_k), d_k = {D_MODEL}/{HEADS} = {D_K}"
    show(name, "section 3.2.1, eq. 1", scaled, asking, answering)
    if mask is not None:
        scaled = np.where(mask[0], scaled, -np.inf)
        show("s, and -inf where the mask has 0", "section 3.2.3", scaled, asking, answering)
    weights = np.exp(scaled) / np.exp(scaled).sum(axis=-1, keepdims=True)
    name = "softmax(s) = e^s / (sum of e^s in its row)"
    show(name, "section 3.2.1, eq. 1", weights, asking, answering)
    draw(weights, asking, answering)

    heads = weights @ v
    show("head = softmax(s) V", "section 3.2.1, eq. 1", heads, asking)
    concatenated = np.concatenate(heads, axis=-1)
    show("Concat(head 1, head 2)", "section 3.2.2", concatenated, asking)
    show("W_O", "section 3.2.2", w_o)
    attended = concatenated @ w_o
    show("MultiHead(Q, K, V) = Concat(head 1, head 2) W_O", "section 3.2.2", attended, asking)

    by_the_layer, weights_of_the_layer = layer(x, memory, mask, return_weights=True)
    np.testing.assert_allclose(by_the_layer[0], attended, atol=1e-5)
    np.testing.assert_allclose(weights_of_the_layer[0], weights, atol=1e-5)
    print("\nMultiHeadAttention gives the same numbers.")
    return attended


layer = model.encoder.layers[0]
attended = attend(layer.self_attention, x, x, words(source), words(source))

# %% [markdown]
# ## Encoder: residual connection, normalisation, feed-forward
#
# The output of a sub-layer is added to its input, r = x + MultiHead(x); then each row of r is
# shifted and scaled to mean 0 and variance 1: LayerNorm(r) = (r - mean of the row) / sqrt(variance
# of the row) (Ba et al. 2016, eq. 4).


# %%
def add_and_normalize(
    residual: Layer, x: tf.Tensor, output: ArrayLike, sublayer: str, rows: Sequence[str]
) -> tf.Tensor:
    """Add a sub-layer's output (T, D) to its input x (1, T, D).

    The sum is normalised: (1, T, D).
    """
    show(f"r = x + {sublayer}", "section 3.1", x[0] + output, rows)
    normalized = residual.after(x, np.asarray(output)[np.newaxis])
    name = "LayerNorm(r) = (r - mean) / sqrt(variance), the next x"
    show(name, "section 3.1", normalized[0], rows)
    return normalized


def feed_forward(layer: Layer, x: tf.Tensor, rows: Sequence[str]) -> tf.Tensor:
    """Compute equation 2 step by step for one sentence: x (1, T, D) -> (T, D)."""
    for name, matrix in zip(("W1", "b1", "W2", "b2"), layer.get_weights(), strict=True):
        show(name, "section 3.3, eq. 2", matrix)
    show("max(0, x W1 + b1)", "section 3.3, eq. 2", layer.inner(x)[0], rows)
    output = layer(x)[0]
    show("FFN(x) = max(0, x W1 + b1) W2 + b2", "section 3.3, eq. 2", output, rows)
    return output


x = add_and_normalize(layer.self_attention_residual, x, attended, "MultiHead(x)", words(source))
output = feed_forward(layer.feed_forward, x, words(source))
memory = add_and_normalize(layer.feed_forward_residual, x, output, "FFN(x)", words(source))
print("\nThis last x is the memory, which the encoder passes to the decoder.")

np.testing.assert_allclose(model.encode(tf.constant([source]))[0], memory, atol=1e-5)
print("\nmodel.encode gives the same numbers.")

# %% [markdown]
# ## Masks
#
# Shorter sentences are filled up with padding, to which no word may attend. The decoder must not
# look ahead, or it would read the word that it has to write. A forbidden position gets a score of
# minus infinity, and therefore a weight of 0.

# %%
batch = tf.constant([source, [5, END_ID, PAD_ID]])
name = "padding mask of 'I sleep </s>' and 'sleep </s> <pad>': 1 where id != 0"
show(name, "section 3.2.3", padding_mask(batch)[:, 0, 0])
ahead = look_ahead_mask(len(target))
name = "look-ahead mask: 1 where column <= row"
show(name, "section 3.2.3", ahead[0, 0], words(target), words(target))

# %% [markdown]
# ## Decoder
#
# A decoder layer applies masked self-attention over the words written so far, then attention from
# these words to the memory, then the feed-forward network.

# %%
decoder = model.decoder.layers[0]
y = model.decoder.add_positions(model.target_embedding(tf.constant([target])))
show("y = E[id] * sqrt(d_model) + PE", "sections 3.4, 3.5", y[0], words(target))

attended = attend(decoder.self_attention, y, y, words(target), words(target), "y", "y", ahead)
y = add_and_normalize(decoder.self_attention_residual, y, attended, "MultiHead(x)", words(target))

# %% [markdown]
# Now the words of the target ask, with the last x as y, and the words of the source answer, with
# the memory.

# %%
attended = attend(decoder.cross_attention, y, memory, words(target), words(source), "y", "memory")
y = add_and_normalize(
    decoder.cross_attention_residual, y, attended, "MultiHead(x, memory)", words(target)
)

# %%
output = feed_forward(decoder.feed_forward, y, words(target))
y = add_and_normalize(decoder.feed_forward_residual, y, output, "FFN(x)", words(target))

# %% [markdown]
# ## From vectors to words, and the loss
#
# The same matrix E gives each word of the vocabulary a score; softmax turns the scores into
# probabilities. Training asks for the next word. With label smoothing, the target is not 1 for this
# word and 0 for the other words; instead, 0.1 is divided equally among all words.

# %%
logits = model({"source": tf.constant([source]), "target": tf.constant([target])})
np.testing.assert_allclose(model.output_embedding.logits(y), logits, atol=1e-5)
show("logits = x E^T", "section 3.4", logits[0], words(target), WORDS)
probabilities = tf.nn.softmax(logits)[0]
show("P(next word) = softmax(logits) of a row", "section 3.4", probabilities, words(target), WORDS)

smoothed = (1 - SMOOTHING) * np.eye(len(WORDS))[labels] + SMOOTHING / len(WORDS)
name = "smoothed = 0.9 one-hot + 0.1 / 8: what the model should say"
show(name, "section 5.4", smoothed, words(labels), WORDS)
losses = -(smoothed * np.log(probabilities)).sum(axis=-1)
name = "-(sum of smoothed * log P): the cross-entropy of each word, in nats"
show(name, "section 5.4", losses, columns=words(labels))
loss = SmoothedCrossEntropy(SMOOTHING)(tf.constant([labels]), logits)
show("loss = their mean, as SmoothedCrossEntropy computes it", "section 5.4", loss)
of_labels = np.asarray(probabilities)[range(3), labels]
perplexity = np.exp(-np.mean(np.log(of_labels)))
show("perplexity = e^(mean of -log P(word)), without smoothing", "section 5.4", perplexity)

# %% [markdown]
# ## Learning
#
# The training text contains "I sleep" ten times, with three translations: 4 x "ich schlafe", 3 x
# "schlafe ich" (as in a question), 3 x "schlafe" (as in a diary). After some steps of Adam, the
# probability of each translation is about its share of the text.

# %%
TRANSLATIONS = {(6, 7): 4, (7, 6): 3, (7,): 3}
rows = [ids for ids, count in TRANSLATIONS.items() for _ in range(count)]
wanted = np.array([[*ids, END_ID, PAD_ID][:3] for ids in rows])
read = np.concatenate([np.full((len(rows), 1), START_ID), wanted[:, :-1]], axis=1)
inputs = {"source": np.array([source] * len(rows)), "target": read}

model.compile(
    keras.optimizers.Adam(0.02, beta_1=0.9, beta_2=0.98, epsilon=1e-9), SmoothedCrossEntropy(0.0)
)
examples = tf.data.Dataset.from_tensors((inputs, wanted, np.float32(wanted != PAD_ID)))
before = model.evaluate(examples, verbose=0)
model.fit(examples.repeat(600), shuffle=False, verbose=0)
after = model.evaluate(examples, verbose=0)
print(f"\nloss before {before:.2f}, after 600 steps {after:.2f} nats per word (section 5.3)")

# %% [markdown]
# ## Greedy search against beam search
#
# Greedy search takes the most likely word at each step and never looks back. Beam search keeps the
# two best beginnings. Here "schlafe" is the most likely first word, but "ich schlafe" is the most
# likely sentence.

# %%
memory = model.encode_and_project(tf.constant([source]))


@tf.function
def next_word(ids: tf.Tensor, step: tf.Tensor, cache: Any) -> tuple[tf.Tensor, Any]:
    """Return the logits (B, V) of the word after `ids` (B,), and the updated cache."""
    logits, cache = model.step(ids[:, tf.newaxis], step, cache, memory)
    return logits[:, 0], cache


def best(search: Callable[..., Any], beams: int, **settings: float) -> tuple[str, float]:
    """Return the best translation that a search finds, and its probability."""
    cache = model.decoder.empty_cache(beams, 4)
    hypotheses = search(next_word, cache, tf.constant([4]), **settings)
    ids = [i for i in hypotheses.ids[0, 0].numpy() if i != PAD_ID]
    return " ".join(words(ids)), float(np.exp(hypotheses.scores[0, 0]))


def follow(ids: Sequence[int]) -> list[float]:
    """Return P(word | the words before it) for each word of a translation.

    It reads the words one by one, with the cache.
    """
    cache = model.decoder.empty_cache(1, 4)
    previous = START_ID
    probabilities = []
    for step, word in enumerate(ids):
        logits, cache = next_word(tf.constant([previous]), tf.constant(step), cache)
        probabilities.append(float(tf.nn.softmax(logits)[0, word]))
        previous = word
    return probabilities


print("\nP(sentence) = product of P(word | the words before it)   (section 3.1, auto-regressive)")
for ids, count in TRANSLATIONS.items():
    sentence = " ".join(words([*ids, END_ID]))
    steps = follow([*ids, END_ID])
    product = " * ".join(f"{probability:.2f}" for probability in steps)
    print(f"P({sentence}) = {product} = {np.prod(steps):.2f}   (in the text: {count} of 10)")
greedy, p_greedy = best(greedy_search, 1)
print(f"greedy search (beam 1) finds  {greedy}  with probability {p_greedy:.2f}   (section 6.1)")
beam, p_beam = best(beam_search, 2, beam_size=2, alpha=0.0)
print(f"beam search   (beam 2) finds  {beam}  with probability {p_beam:.2f}   (section 6.1)")
