"""The run directory: what a training writes, and what translating, scoring and exporting read. Knows no training.

config.json         the recipe in full, with the digests of the tokenizers and of the training text
tokenizer.model     the vocabulary (or source.model and target.model)
best.weights.h5     the weights with the best validation BLEU, or bits per byte
resume.npz          every variable and the epochs so far: where --resume goes on
metrics.jsonl       one line an epoch
result.json         written last: the training has finished
tensorboard/        the same figures and sample texts for TensorBoard
"""

import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tfformer.config import Config, ModelConfig
from tfformer.data.tokenizers import Tokenizer
from tfformer.files import whole_file, write_text
from tfformer.model.language_model import LanguageModel
from tfformer.model.transformer import Transformer


@dataclass(frozen=True)
class Tokenizers:
    """Source and target tokenizer; one and the same object where the vocabulary is shared."""

    source: Tokenizer
    target: Tokenizer

    @property
    def shared(self) -> bool:
        return self.source is self.target

    @property
    def digests(self) -> dict[str, str]:
        return {"source": self.source.digest, "target": self.target.digest}


Model = Transformer | LanguageModel

WHAT_IT_IS = {
    "encoder-decoder": "a translation model, for `tfformer translate`",
    "decoder": "a language model, for `tfformer generate`",
}


def new_model(config: ModelConfig, tokenizers: Tokenizers, dtype: str = "float32") -> Model:
    """The model that a recipe describes, untrained."""
    arguments = dict(vars(config))
    if arguments.pop("architecture") == "decoder":
        del arguments["num_decoder_layers"]
        return LanguageModel(tokenizers.target.vocab_size, dtype=dtype, **arguments)
    return Transformer(
        tokenizers.source.vocab_size, tokenizers.target.vocab_size, dtype=dtype, **arguments
    )


class RunDirectory:
    """A folder with one training in it. Every file is replaced whole; nothing else in the folder is touched."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._config = self.path / "config.json"
        self.weights = self.path / "best.weights.h5"
        self.resume_state = self.path / "resume.npz"
        self.metrics = self.path / "metrics.jsonl"
        self.result = self.path / "result.json"
        self.tensorboard = self.path / "tensorboard"

    @classmethod
    def open(cls, path: str | Path) -> "RunDirectory":
        """An existing run; FileNotFoundError if there is none."""
        run = cls(path)
        if not run._config.is_file():
            raise FileNotFoundError(
                f"{path} is not a run directory: it has no config.json; give the --run-dir of a training"
            )
        return run

    def check_free(self) -> None:
        """FileExistsError unless the folder is absent or empty, so that nothing is ever overwritten."""
        if self._config.exists():
            raise FileExistsError(
                f"{self.path} already holds a run; add --resume to go on with it, or choose another folder"
            )
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise FileExistsError(
                f"{self.path} exists and is not an empty folder; choose another --run-dir"
            )

    def create(self, config: Config, tokenizers: Tokenizers, text_digest: str = "") -> None:
        """Write what every later step reads; config.json last, as it makes the folder a run, and not a finished one."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.result.unlink(missing_ok=True)
        sides = (tokenizers.source, tokenizers.target)
        for path, tokenizer in zip(self._tokenizer_paths(tokenizers.shared), sides, strict=False):
            tokenizer.save(path)
        values = config.to_dict() | {"digests": tokenizers.digests | {"text": text_digest}}
        write_text(self._config, json.dumps(values, indent=2) + "\n")

    def config(self) -> Config:
        return self._read_config()[0]

    def tokenizers(self) -> Tokenizers:
        """The vocabularies, checked against the digests that the run was trained with."""
        config, digests = self._read_config()
        paths = self._tokenizer_paths(config.tokenizer.shared)
        loaded = [Tokenizer.load(path) for path in paths]
        tokenizers = Tokenizers(loaded[0], loaded[-1])
        if tokenizers.digests != {side: digests.get(side) for side in ("source", "target")}:
            raise ValueError(
                f"{paths[0]} is not the vocabulary that {self.path} was trained with; restore the original file"
            )
        return tokenizers

    def check_architecture(self, wanted: str) -> None:
        """ValueError if the run's model is of another kind."""
        found = self.config().model.architecture
        if found != wanted:
            raise ValueError(
                f"{self.path} holds {WHAT_IT_IS[found]}; this needs {WHAT_IT_IS[wanted]}"
            )

    def check_text(self, text_digest: str) -> None:
        """ValueError if the training text is not the one that the run began with."""
        if self._read_config()[1].get("text") != text_digest:
            raise ValueError(
                f"the training text is not the one that {self.path} began with; restore it or start a new run"
            )

    def load_model(self, tokenizers: Tokenizers) -> Model:
        """The run's model with its best weights."""
        if not self.weights.is_file():
            raise FileNotFoundError(
                f"{self.path} has no best.weights.h5 yet: no validation has been reached; train on"
            )
        model = new_model(self.config().model, tokenizers)
        try:
            model.load_weights(self.weights)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ValueError(
                f"{self.weights} is damaged or not of this model ({first_line(error)}); train again"
            ) from None
        return model

    def save_weights(self, model: Model) -> None:
        with whole_file(self.weights) as temporary:
            model.save_weights(temporary)

    def save_resume_state(self, model: Model, history: list[dict]) -> None:
        """Every variable of model and optimizer, and the history of the epochs (plain JSON values)."""
        lines = [json.dumps(epoch) for epoch in history]
        arrays = {
            f"variable_{n}": np.asarray(variable) for n, variable in enumerate(_variables(model))
        }
        with whole_file(self.resume_state) as temporary, temporary.open("wb") as file:
            np.savez(file, history=np.array(lines, dtype=str), **arrays)
        write_text(self.metrics, "".join(line + "\n" for line in lines))

    def load_resume_state(self, model: Model) -> list[dict]:
        """Put the variables back and return the history."""
        history, variables = self.history(), _variables(model)
        with self._open_resume_state() as state:
            arrays = [state[f"variable_{n}"] for n in range(len(variables))]
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)
        return history

    def history(self) -> list[dict]:
        """The epochs behind the resume state; none before the first has ended."""
        if not self.resume_state.is_file():
            return []
        with self._open_resume_state() as state:
            return [json.loads(line) for line in state["history"]]

    @contextmanager
    def _open_resume_state(self) -> Iterator[np.lib.npyio.NpzFile]:
        try:
            with np.load(self.resume_state, allow_pickle=False) as state:
                yield state
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{self.resume_state} is damaged ({first_line(error)}); start a new run"
            ) from None

    def finish(self, result: dict) -> None:
        write_text(self.result, json.dumps(result, indent=2) + "\n")

    def _read_config(self) -> tuple[Config, dict]:
        """The recipe, and the digests of the tokenizers and of the training text."""
        try:
            values = json.loads(self._config.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(
                f"{self._config} is damaged ({first_line(error)}); restore it or train again"
            ) from None
        if not isinstance(values, dict):
            raise ValueError(
                f"{self._config} is damaged (not a JSON object); restore it or train again"
            )
        digests = values.pop("digests", None)
        if not isinstance(digests, dict):
            raise ValueError(
                f"{self._config} is damaged (it has no digests); restore it or train again"
            )
        try:
            return Config.from_dict(values), digests
        except ValueError as error:
            raise ValueError(f"{self._config}: {error}") from None

    def _tokenizer_paths(self, shared: bool) -> list[Path]:
        names = ["tokenizer.model"] if shared else ["source.model", "target.model"]
        return [self.path / name for name in names]


def first_line(error: Exception) -> str:
    """The first line of an error's text: what fits into a message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _variables(model: Model) -> list:
    return [*model.variables, *model.optimizer.variables]
