"""A Marian model in NumPy and float64, written from marian-dev's models/transformer.h."""

import numpy as np
from support.numpy_layers import log_softmax


def positions(length: int, d_model: int, first: int = 0) -> np.ndarray:
    """(T, D): all sines, then all cosines, of wavelengths from 2 pi to 20,000 pi."""
    pairs = d_model // 2
    rates = np.exp(np.arange(pairs) * -(np.log(10000.0) / (pairs - 1)))
    angles = np.arange(first, first + length)[:, np.newaxis] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


class NumpyMarian:
    """Log-probabilities of one sentence pair.

    They come from the tensors and options of an .npz file. A pre-norm model is computed as Marian
    trains it, or `as_decoder`, token by token, as marian-decoder does.
    """

    def __init__(self, options: dict, tensors: dict, as_decoder: bool = False):
        self.as_decoder = as_decoder
        self.tensors = {name: np.asarray(t, np.float64) for name, t in tensors.items()}
        self.d_model = options["dim-emb"]
        self.heads = options["transformer-heads"]
        self.activation = options.get("transformer-ffn-activation", "swish")
        self.depths = {"encoder": options["enc-depth"], "decoder": options["dec-depth"]}
        self.pre = "n" in options.get("transformer-preprocess", "")

    def log_probs(self, source: list[int], target: list[int]) -> np.ndarray:
        """Return the log-probability of each target id; both sides end with the end token."""
        embedding = self.find("encoder_Wemb", "Wemb")
        x = embedding[source] * np.sqrt(self.d_model) + positions(len(source), self.d_model)
        memory = self.stack("encoder", x, None)
        embedding = self.find("decoder_Wemb", "Wemb")
        y = np.zeros((len(target), self.d_model))
        y[1:] = embedding[target[:-1]] * np.sqrt(self.d_model)
        y = self.stack("decoder", y + positions(len(target), self.d_model), memory)
        logits = y @ self.output() + self.tensors["decoder_ff_logit_out_b"][0]
        return log_softmax(logits)[np.arange(len(target)), target]

    def output(self) -> np.ndarray:
        if "decoder_ff_logit_out_W" in self.tensors:
            return self.tensors["decoder_ff_logit_out_W"]
        return self.find("decoder_ff_logit_out_Wt", "decoder_Wemb", "Wemb").T

    def find(self, *names: str) -> np.ndarray:
        return next(self.tensors[name] for name in names if name in self.tensors)

    def stack(self, stack_name: str, x: np.ndarray, memory: np.ndarray | None) -> np.ndarray:
        look_ahead = np.tri(len(x), dtype=bool) if stack_name == "decoder" else None
        for layer in range(1, self.depths[stack_name] + 1):
            name = f"{stack_name}_l{layer}"
            if f"{name}_rnn_W" in self.tensors:
                end = "" if self.pre else "_ffn"
                x = self.sublayer(x, f"{name}_rnn{end}", lambda h, n=f"{name}_rnn": self.read(n, h))
            elif stack_name == "decoder" and self.as_decoder:
                x = self.attend_token_by_token(f"{name}_self", x)
            else:
                x = self.sublayer(
                    x,
                    f"{name}_self_Wo",
                    lambda h, n=f"{name}_self": self.attend(n, h, h, look_ahead),
                )
            if memory is not None:
                x = self.sublayer(
                    x,
                    f"{name}_context_Wo",
                    lambda h, n=f"{name}_context": self.attend(n, h, memory, None),
                )
            x = self.sublayer(
                x, f"{name}_ffn_ffn", lambda h, n=f"{name}_ffn": self.feed_forward(n, h)
            )
        return self.normalise(x, f"{stack_name}_top", "") if self.pre else x

    def read(self, name: str, x: np.ndarray) -> np.ndarray:
        """SSRU of rnn/cells.h: a highway between the state and the input, then ReLU."""
        forget = 1 / (1 + np.exp(-self.linear(x, name, "f")))
        inputs = x @ self.tensors[f"{name}_W"]
        state, states = np.zeros(self.d_model), []
        for gate, given in zip(forget, inputs, strict=True):
            state = gate * state + (1 - gate) * given
            states.append(np.maximum(state, 0))
        return np.stack(states)

    def attend_token_by_token(self, name: str, x: np.ndarray) -> np.ndarray:
        """DecoderLayerSelfAttention: `values` are normalised if they are the input itself."""
        rows = []
        for position in range(len(x)):
            given = x[position : position + 1]
            query = self.normalise(given, f"{name}_Wo", "_pre")
            values = query if position == 0 else x[: position + 1]
            rows.append(given + self.attend(name, query, values, None))
        return np.concatenate(rows)

    def sublayer(self, x: np.ndarray, norm: str, function) -> np.ndarray:
        if self.pre:
            return x + function(self.normalise(x, norm, "_pre"))
        return self.normalise(x + function(x), norm, "")

    def normalise(self, x: np.ndarray, name: str, ending: str) -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-6)
        scale = self.tensors[f"{name}_ln_scale{ending}"]
        return normal * scale + self.tensors[f"{name}_ln_bias{ending}"]

    def linear(self, x: np.ndarray, name: str, letter: str) -> np.ndarray:
        return x @ self.tensors[f"{name}_W{letter}"] + self.tensors[f"{name}_b{letter}"]

    def attend(self, name: str, query, memory, mask) -> np.ndarray:
        depth = self.d_model // self.heads
        heads = []
        q, k, v = (
            self.linear(x, name, letter)
            for x, letter in ((query, "q"), (memory, "k"), (memory, "v"))
        )
        for head in range(self.heads):
            columns = slice(head * depth, (head + 1) * depth)
            scores = q[:, columns] @ k[:, columns].T / np.sqrt(depth)
            if mask is not None:
                scores = np.where(mask, scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            heads.append(weights / weights.sum(axis=1, keepdims=True) @ v[:, columns])
        return self.linear(np.concatenate(heads, axis=1), name, "o")

    def feed_forward(self, name: str, x: np.ndarray) -> np.ndarray:
        inner = self.linear(x, name, "1")
        if self.activation == "relu":
            return self.linear(np.maximum(inner, 0), name, "2")
        return self.linear(inner / (1 + np.exp(-inner)), name, "2")
