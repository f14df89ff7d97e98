"""The run directory: what a training writes, and what translating, scoring and exporting read. Knows no training.

config.json         the recipe in full, with the digests of the tokenizers and of the training text
tokenizer.model     the vocabulary (or source.model and target.model)
best.weights.h5     the weights with the best validation BLEU, or bits per byte
resume.npz          every variable and the epochs so far: where --resume goes on
metrics.jsonl       one line an epoch
result.json         written last: the training has finished
tensorboard/        the same figures and sample texts for TensorBoard
"""

import functools
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tfformer.config import RUN_CONFIG, Config, ModelConfig, run_config_file
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


@dataclass(frozen=True)
class Run:
    """An opened run directory: its recipe is read once, and the run is handed down.

    Every file of it is replaced whole; nothing else in the folder is touched.

    Example:
        >>> Run.open("no/such/folder")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        FileNotFoundError: no/such/folder is not a run directory: it has no config.json; ...
    """

    path: Path
    config: Config
    digests: dict[str, str]  # SHA-256 of "source" and "target" tokenizer and of the "text"

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """Open an existing run.

        Args:
            path: The `--run-dir` of a training, finished or not.

        Returns:
            The run, with its recipe and digests.

        Raises:
            FileNotFoundError: There is no run at `path`.
            ValueError: Its config.json is damaged.
        """
        config, digests = _read_config(run_config_file(path))
        return cls(Path(path), config, digests)

    @classmethod
    def create(
        cls, path: str | Path, config: Config, tokenizers: Tokenizers, text_digest: str = ""
    ) -> "Run":
        """Write everything that later steps read; config.json last, as it makes the folder a run.

        A run of before may be there, to be resumed: it is no finished one any more.

        Args:
            path: The folder; made if it is not there.
            config: The whole recipe.
            tokenizers: The vocabularies to train with.
            text_digest: The digest of the encoded training text, which `check_text` compares.

        Returns:
            The run, opened.
        """
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "result.json").unlink(missing_ok=True)
        sides = (tokenizers.source, tokenizers.target)
        paths = _tokenizer_paths(folder, tokenizers.shared)
        for file, tokenizer in zip(paths, sides, strict=False):
            tokenizer.save(file)
        digests = tokenizers.digests | {"text": text_digest}
        values = config.to_dict() | {"digests": digests}
        write_text(folder / RUN_CONFIG, json.dumps(values, indent=2) + "\n")
        return cls(folder, config, digests)

    @property
    def weights(self) -> Path:
        """The file of the weights with the best validation."""
        return self.path / "best.weights.h5"

    @property
    def resume_state(self) -> Path:
        """The file of every variable and of the epochs so far."""
        return self.path / "resume.npz"

    @property
    def metrics(self) -> Path:
        """The file with a line of JSON for each epoch."""
        return self.path / "metrics.jsonl"

    @property
    def result(self) -> Path:
        """The file that a finished training has."""
        return self.path / "result.json"

    @property
    def tensorboard(self) -> Path:
        """The folder of TensorBoard's events."""
        return self.path / "tensorboard"

    @functools.cached_property
    def tokenizers(self) -> Tokenizers:
        """The vocabularies, checked against the digests of those that the run was trained with."""
        paths = _tokenizer_paths(self.path, self.config.tokenizer.shared)
        loaded = [Tokenizer.load(path) for path in paths]
        tokenizers = Tokenizers(loaded[0], loaded[-1])
        if tokenizers.digests != {side: self.digests.get(side) for side in ("source", "target")}:
            raise ValueError(
                f"{paths[0]} is not the vocabulary that {self.path} was trained with; restore the original file"
            )
        return tokenizers

    def check_architecture(self, wanted: str) -> None:
        """Raise ValueError if the run's model is of another kind than `wanted`."""
        found = self.config.model.architecture
        if found != wanted:
            raise ValueError(
                f"{self.path} holds {WHAT_IT_IS[found]}; this needs {WHAT_IT_IS[wanted]}"
            )

    def check_text(self, text_digest: str) -> None:
        """Raise ValueError if the training text is not the one that the run began with."""
        if self.digests.get("text") != text_digest:
            raise ValueError(
                f"the training text is not the one that {self.path} began with; restore it or start a new run"
            )

    def load_model(self) -> Model:
        """Build the run's model and give it the best weights.

        Raises:
            FileNotFoundError: No validation has been reached yet.
            ValueError: The weights are damaged, or not of this recipe's model.
        """
        if not self.weights.is_file():
            raise FileNotFoundError(
                f"{self.path} has no best.weights.h5 yet: no validation has been reached; train on"
            )
        model = new_model(self.config.model, self.tokenizers)
        try:
            model.load_weights(self.weights)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ValueError(
                f"{self.weights} is damaged or not of this model ({first_line(error)}); train again"
            ) from None
        return model

    def save_weights(self, model: Model) -> None:
        """Replace best.weights.h5."""
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
        """Write result.json: the training is over."""
        write_text(self.result, json.dumps(result, indent=2) + "\n")


def check_free(path: str | Path) -> None:
    """Raise FileExistsError unless the folder is absent or empty, so that nothing is overwritten."""
    folder = Path(path)
    if (folder / RUN_CONFIG).exists():
        raise FileExistsError(
            f"{folder} already holds a run; add --resume to go on with it, or choose another folder"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(
            f"{folder} exists and is not an empty folder; choose another --run-dir"
        )


def _read_config(path: Path) -> tuple[Config, dict[str, str]]:
    """The recipe, and the digests of the tokenizers and of the training text."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"{path} is damaged ({first_line(error)}); restore it or train again"
        ) from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} is damaged (not a JSON object); restore it or train again")
    digests = values.pop("digests", None)
    if not isinstance(digests, dict):
        raise ValueError(f"{path} is damaged (it has no digests); restore it or train again")
    try:
        return Config.from_dict(values), digests
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _tokenizer_paths(folder: Path, shared: bool) -> list[Path]:
    names = ["tokenizer.model"] if shared else ["source.model", "target.model"]
    return [folder / name for name in names]


def first_line(error: Exception) -> str:
    """The first line of an error's text: what fits into a message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _variables(model: Model) -> list:
    return [*model.variables, *model.optimizer.variables]
