# %% [markdown]
# # The Transformer on two words
#
# "I sleep" goes through a Transformer that is small enough to follow by hand: vectors of 4 numbers, 2 heads, one layer
# on each side. Every step is taken with the layers of this package, and every line names its place in "Attention Is All
# You Need" (Vaswani et al. 2017). The weights are random and have one decimal, so any product can be checked.
#
# The same lesson as a script: `python scripts/tour.py`; as a notebook: `docs/tour.ipynb`.

# %%
from tfformer.cli import import_tensorflow

import_tensorflow()  # without the lines that it prints of itself

import keras
import numpy as np
import tensorflow as tf

from tfformer import SmoothedCrossEntropy, Transformer, look_ahead_mask, padding_mask
from tfformer.decoding import beam_search, greedy_search
from tfformer.layers import positional_encoding
from tfformer.special_ids import END_ID, PAD_ID, START_ID

WORDS = ["<pad>", "<unk>", "<s>", "</s>", "I", "sleep", "ich", "schlafe"]
D_MODEL, HEADS, D_FF, SMOOTHING = 4, 2, 6, 0.1
D_K = D_MODEL // HEADS


def show(what, where, values, rows=(), columns=()):
    """One step: what it is, its place in the paper, its shape, its numbers with names beside and above them."""
    values = np.asarray(values)
    shape = " x ".join(map(str, values.shape)) or "one number"
    print(f"\n{what}   ({where}; {shape})")
    heads = values if values.ndim == 3 else [np.atleast_2d(values)]
    for number, head in enumerate(heads, start=1):
        if len(heads) > 1 or columns:
            name = f"  head {number}" if len(heads) > 1 else ""
            print(f"{name:<14}" + "".join(f"{column:>8}" for column in columns))
        for name, row in zip(rows or [""] * len(head), head, strict=True):
            print(f"    {name:<10}" + "".join(f"{number:8.2f}" for number in row))


def split_heads(x):
    """(T, D) -> (H, T, D / H): each head has its own part of the columns."""
    return np.stack(np.split(np.asarray(x), HEADS, axis=-1))


def words(ids):
    return [WORDS[i] for i in ids]


# %% [markdown]
# ## The model
#
# One matrix is at once the source embedding, the target embedding and the output projection (section 3.4). The paper
# gives the attention projections no bias.

# %%
model = Transformer(
    len(WORDS), len(WORDS), num_layers=1, d_model=D_MODEL, num_heads=HEADS, d_ff=D_FF, dropout=0.0,
    tie_embeddings="all", use_bias=False,
)  # fmt: skip
random = np.random.default_rng(3)
for weight in model.weights:
    if weight.name not in ("gamma", "beta"):  # normalisation begins with a gain of 1 and a bias of 0
        weight.assign(np.round(random.normal(scale=0.6, size=weight.shape), 1))

source, target, labels = [WORDS.index("I"), WORDS.index("sleep"), END_ID], [START_ID, 6, 7], [6, 7, END_ID]
print("source:", words(source), source)
print("what the decoder reads: ", words(target), target)
print("what it should write:   ", words(labels), labels)
show("E, the embedding of each word", "section 3.4", model.source_embedding.embeddings, WORDS)

# %% [markdown]
# ## Encoder: embedding and position
#
# A word is its row of E, times the square root of d_model. To it is added where the word stands, as sines and cosines.

# %%
embedding = model.source_embedding(tf.constant([source]))
show(f"E[id] * sqrt({D_MODEL})", "section 3.4", embedding[0], words(source))

positions = positional_encoding(tf.range(len(source)), D_MODEL)
show("PE: sin(pos), cos(pos), sin(pos/100), cos(pos/100)", "section 3.5", positions, words(source))

x = model.encoder.enter(embedding)
show("x = E[id] * sqrt(d_model) + PE", "section 3.5", x[0], words(source))

# %% [markdown]
# ## Encoder: self-attention
#
# Each word asks (query), offers (key) and has something to give (value). A head has its own two columns of each.

# %%
layer = model.encoder.layers[0]
attention = layer.self_attention
key_value = attention.project(x)
q, k, v = split_heads(attention.query(x)[0]), key_value.key[0], key_value.value[0]
show("Q = x W_Q", "section 3.2.2", q, words(source))
show("K = x W_K", "section 3.2.2", k, words(source))
show("V = x W_V", "section 3.2.2", v, words(source))

scores = q @ np.swapaxes(k, 1, 2)
show("Q K^T: a row asks, a column answers", "section 3.2.1, eq. 1", scores, words(source), words(source))
scaled = scores / np.sqrt(D_K)
show(
    f"Q K^T / sqrt(d_k), d_k = {D_MODEL}/{HEADS} = {D_K}", "section 3.2.1, eq. 1", scaled, words(source), words(source)
)
weights = np.exp(scaled) / np.exp(scaled).sum(axis=-1, keepdims=True)
show("softmax: the weights, each row sums to 1", "section 3.2.1, eq. 1", weights, words(source), words(source))

heads = weights @ v
show("head = softmax(Q K^T / sqrt(d_k)) V", "section 3.2.1, eq. 1", heads, words(source))
concatenated = np.concatenate(heads, axis=-1)
show("Concat(head 1, head 2)", "section 3.2.2", concatenated, words(source))
attended = concatenated @ attention.output_projection.kernel.numpy()
show("MultiHead(Q, K, V) = Concat(head 1, head 2) W_O", "section 3.2.2", attended, words(source))

by_the_layer, weights_of_the_layer = attention(x, x, return_weights=True)
np.testing.assert_allclose(by_the_layer[0], attended, atol=1e-5)
np.testing.assert_allclose(weights_of_the_layer[0], weights, atol=1e-5)
print("\nMultiHeadAttention(x, x) gives the same numbers.")

# %% [markdown]
# ## Encoder: residual connection, normalisation, feed-forward
#
# What a sub-layer finds is added to what came in; then each row is moved and scaled to mean 0 and variance 1.

# %%
added = x[0] + attended
show("x + MultiHead(x)", "section 3.1", added, words(source))
normalized = layer.self_attention_residual(x, attended[np.newaxis])
show("LayerNorm(x + MultiHead(x))", "section 3.1; Ba et al. 2016", normalized[0], words(source))

inner = layer.feed_forward.inner(normalized)
show("max(0, x W1 + b1)", "section 3.3, eq. 2", inner[0], words(source))
outer = layer.feed_forward(normalized)
show("FFN(x) = max(0, x W1 + b1) W2 + b2", "section 3.3, eq. 2", outer[0], words(source))
memory = layer.feed_forward_residual(normalized, outer)
show("memory = LayerNorm(x + FFN(x)): what the encoder hands over", "section 3.1", memory[0], words(source))

np.testing.assert_allclose(model.encode(tf.constant([source]))[0], memory, atol=1e-5)
print("\nmodel.encode gives the same numbers.")

# %% [markdown]
# ## Masks
#
# Shorter sentences are filled up with padding, which nobody may look at. The decoder may not look ahead, or it would
# read the word that it is to write. A place that is not allowed gets a score of minus infinity, so a weight of 0.

# %%
batch = tf.constant([source, [5, END_ID, PAD_ID]])
show("padding mask of 'I sleep </s>' and 'sleep </s> <pad>'; 1: allowed", "section 3.1", padding_mask(batch)[:, 0, 0])
ahead = look_ahead_mask(len(target))[0, 0]
show("look-ahead mask; 1: allowed", "section 3.2.3", ahead, words(target), words(target))

# %% [markdown]
# ## Decoder
#
# Masked self-attention over what has been written, then attention from there to the memory, then feed-forward.

# %%
decoder = model.decoder.layers[0]
y = model.decoder.enter(model.target_embedding(tf.constant([target])))
show("y = E[id] * sqrt(d_model) + PE", "sections 3.4, 3.5", y[0], words(target))

self_query, self_key_value = split_heads(decoder.self_attention.query(y)[0]), decoder.self_attention.project(y)
self_scores = np.where(ahead, self_query @ np.swapaxes(self_key_value.key[0], 1, 2) / np.sqrt(D_K), -np.inf)
show("Q K^T / sqrt(d_k), masked", "section 3.2.3", self_scores, words(target), words(target))
self_attended, self_weights = decoder.self_attention(y, y, look_ahead_mask(len(target)), return_weights=True)
show("softmax: nobody looks ahead", "section 3.2.1, eq. 1", self_weights[0], words(target), words(target))
y = decoder.self_attention_residual(y, self_attended)
show("LayerNorm(y + MultiHead(y))", "section 3.1", y[0], words(target))

cross_attended, cross_weights = decoder.cross_attention(y, memory, return_weights=True)
show(
    "cross-attention: a row is a target word, a column a source word",
    "section 3.2.3",
    cross_weights[0],
    words(target),
    words(source),
)
y = decoder.cross_attention_residual(y, cross_attended)
show("LayerNorm(y + MultiHead(y, memory))", "section 3.1", y[0], words(target))
y = decoder.feed_forward_residual(y, decoder.feed_forward(y))
show("LayerNorm(y + FFN(y))", "sections 3.1, 3.3", y[0], words(target))

# %% [markdown]
# ## From vectors to words, and the loss
#
# The same matrix E gives each word of the vocabulary a score; softmax makes them probabilities. Training asks for the
# next word: with label smoothing the target is not 1 for it and 0 for the rest, but leaves 0.1 to all words alike.

# %%
logits = model({"source": tf.constant([source]), "target": tf.constant([target])})
np.testing.assert_allclose(model.output_embedding.logits(y), logits, atol=1e-5)
show("logits = y E^T", "section 3.4", logits[0], words(target), WORDS)
probabilities = tf.nn.softmax(logits)[0]
show("softmax(logits): a row is P(next word)", "section 3.4", probabilities, words(target), WORDS)

smoothed = (1 - SMOOTHING) * np.eye(len(WORDS))[labels] + SMOOTHING / len(WORDS)
show("what the model should say: 0.9 one-hot + 0.1 / 8", "section 5.4", smoothed, words(labels), WORDS)
losses = -(smoothed * np.log(probabilities)).sum(axis=-1)
show("cross-entropy of each word, in nats", "section 5.4", losses, columns=words(labels))
loss = SmoothedCrossEntropy(SMOOTHING)(tf.constant([labels]), logits)
show("their mean, as SmoothedCrossEntropy has it: the loss", "section 5.4", loss)
show("perplexity = e^(mean of -log P(word)), without smoothing", "section 6.1",
     np.exp(-np.mean(np.log(np.asarray(probabilities)[range(3), labels]))))  # fmt: skip

# %% [markdown]
# ## Learning
#
# Ten times "I sleep", with three translations: 4 x "ich schlafe", 3 x "schlafe ich" (as in a question), 3 x "schlafe"
# (as in a diary). After some steps of Adam the model gives each about its share.

# %%
TRANSLATIONS = {(6, 7): 4, (7, 6): 3, (7,): 3}
rows = [ids for ids, count in TRANSLATIONS.items() for _ in range(count)]
wanted = np.array([[*ids, END_ID, PAD_ID][:3] for ids in rows])
read = np.concatenate([np.full((len(rows), 1), START_ID), wanted[:, :-1]], axis=1)
inputs = {"source": np.array([source] * len(rows)), "target": read}

model.compile(keras.optimizers.Adam(0.02, beta_1=0.9, beta_2=0.98, epsilon=1e-9), SmoothedCrossEntropy(0.0))
examples = tf.data.Dataset.from_tensors((inputs, wanted, np.float32(wanted != PAD_ID)))
before = model.evaluate(examples, verbose=0)
model.fit(examples.repeat(600), shuffle=False, verbose=0)
after = model.evaluate(examples, verbose=0)
print(f"\nloss before {before:.2f}, after 600 steps {after:.2f} nats a word (section 5.3)")

# %% [markdown]
# ## Greedy search against beam search
#
# Greedy search takes the likeliest word at each step and never looks back. Beam search keeps the two best beginnings.
# Here "schlafe" is the likeliest first word, but "ich schlafe" the likeliest sentence.

# %%
memory = model.memory(tf.constant([source]))


def next_word(ids, step, cache):
    return model.decode_step(ids, step, cache, memory)


def search(find, beams, *settings):
    found = find(next_word, model.decoder.empty_cache(beams, 4), tf.constant([4]), *settings)
    return [
        (words([i for i in ids if i != PAD_ID]), float(np.exp(score)))
        for ids, score in zip(found.ids[0].numpy(), found.scores[0].numpy(), strict=True)
    ]


def follow(ids):
    """P(word | the words before it) for each word of a translation, through the cache."""
    cache, previous, found = model.decoder.empty_cache(1, 4), START_ID, []
    for step, word in enumerate(ids):
        logits, cache = next_word(tf.constant([previous]), tf.constant(step), cache)
        found.append(float(tf.nn.softmax(logits)[0, word]))
        previous = word
    return found


print()
greedy, beam = search(greedy_search, 1), search(beam_search, 2, 2, 0.0)
for ids, count in TRANSLATIONS.items():
    steps = follow([*ids, END_ID])
    product = " * ".join(f"{probability:.2f}" for probability in steps)
    print(f"P({' '.join(words([*ids, END_ID]))}) = {product} = {np.prod(steps):.2f}   (in the text: {count} of 10)")
print(f"greedy search (beam 1) finds  {' '.join(greedy[0][0])}  with probability {greedy[0][1]:.2f}")
print(f"beam search   (beam 2) finds  {' '.join(beam[0][0])}  with probability {beam[0][1]:.2f}   (section 6.1)")
