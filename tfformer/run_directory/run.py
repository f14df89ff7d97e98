"""An opened run directory: reading, checking, writing and locking its files."""

import dataclasses
import functools
import json
import lzma
import math
import shutil
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import h5py
import keras
import numpy as np

from tfformer.config import Architecture, Config
from tfformer.data.encoding import IdRows
from tfformer.data.imported_tokenizers import load_tokenizer
from tfformer.data.tokenizers import Tokenizers
from tfformer.run_directory.model_kinds import MODEL_KINDS, Model, ModelKind, new_model
from tfformer.storage.artifact_folders import BEFORE_CONFIG, RUN_CONFIG, check_free, run_folder
from tfformer.storage.folders import Folder, folder_at
from tfformer.storage.whole_files import (
    LOCK,
    OWN_BYTES,
    digest_of_values,
    error_keeping,
    parse_json,
    read_seal,
    read_text,
    seal,
    whole_file,
    write_text,
)

MOVABLE = ("train", "valid", "folder", "cache")  # keys of `data` that may be edited in config.json


def digest_of_settings(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of config.json's recipe, except the paths of its text."""
    data = {key: value for key, value in (values.get("data") or {}).items() if key not in MOVABLE}
    return digest_of_values({**values, "data": data})


def digest_of_model(values: Mapping[str, Any], digests: Mapping[str, str]) -> str:
    """Return the SHA-256 of the model's settings in config.json and of its vocabularies."""
    vocabularies = {name: digests.get(name) for name in ("source", "target")}
    return digest_of_values({"model": values.get("model"), **vocabularies})


DAMAGED_ZIP = (  # errors of np.load; zipfile reports some damage as an unknown method or a password
    OSError,
    ValueError,
    KeyError,
    EOFError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
)
SHORTLIST = "shortlist.npz"
RESUME_STATE = "resume.npz"  # the largest file; only --resume needs it
UNREADABLE = (OSError, ValueError, KeyError, RuntimeError, TypeError, AttributeError)  # in h5py


class Calibration(NamedTuple):
    """The temperature that calibrates a model's confidences, and what it changes.

    See `tfformer.inference.calibration`.
    """

    temperature: float  # by which logits are divided
    tokens: int  # of the validation text that it was fitted to
    error_before: float  # the expected calibration error at temperature 1
    error_after: float


class SavesWeights(Protocol):
    """A model, or any other object that can write a Keras weights file."""

    def save_weights(self, filepath: BytesIO) -> None:
        """Write the weights into a file whose name ends in `.weights.h5`."""


@dataclass(frozen=True)
class Run:
    """An opened run directory; its recipe is read once.

    Every file is replaced atomically, and the folder is then pushed.
    """

    folder: Folder
    config: Config
    digests: dict[str, str]  # SHA-256 of "source", "target", "text", "valid" and "settings"
    model_digest: str = ""  # SHA-256 of the model's settings and vocabularies
    pair: tuple[str | None, str | None] = (None, None)  # languages other than the run's own

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """Open an existing run, finished or not.

        Raises:
            FileNotFoundError: There is no run at `path`.
            ValueError: Its config.json is damaged, or was changed.
            OSError: The store of a remote run cannot be read.
        """
        folder = run_folder(path)
        folder.pull(but=[RESUME_STATE])
        file = folder.path / RUN_CONFIG
        try:
            values = parse_json(read_text(file, OWN_BYTES))
        except ValueError as error:
            raise _damaged(file, first_line(error)) from None
        if not isinstance(values, dict):
            raise _damaged(file, "not a JSON object")
        digests = values.pop("digests", None)
        if not isinstance(digests, dict):
            raise _damaged(file, "it has no digests")
        try:
            config = Config.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
        if digests.get("settings") != digest_of_settings(values):
            raise ValueError(
                f"{file} was changed since it was written: its settings do not match their digest; "
                f"restore it or train again (only data.{', data.'.join(MOVABLE)} may be edited)"
            )
        return cls(folder, config, digests, digest_of_model(values, digests))

    @classmethod
    def new(
        cls,
        path: str | Path,
        config: Config,
        tokenizers: Tokenizers,
        text_digest: str = "",
        valid_digest: str = "",
    ) -> "Run":
        """Return a run that is not written yet; `write` creates its folder.

        `text_digest` is the digest of the encoded training text, and `valid_digest` is that of the
        rows of the validation text; `check_texts` compares both.
        """
        values = config.to_dict()
        settings = {"settings": digest_of_settings(values)}
        texts = {"text": text_digest, "valid": valid_digest}
        digests = tokenizers.digests | texts | settings
        return cls(folder_at(path), config, digests, digest_of_model(values, digests))

    @classmethod
    def create(cls, path: str | Path, config: Config, tokenizers: Tokenizers) -> "Run":
        """Create a new run and write it immediately; see `new` and `write`."""
        run = cls.new(path, config, tokenizers)
        run.write(tokenizers)
        return run

    def write(self, tokenizers: Tokenizers) -> None:
        """Write the vocabularies and then config.json, which makes the folder a run.

        An existing run, when it is resumed, counts as unfinished from then on.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self.result.unlink(missing_ok=True)
        pair = (tokenizers.source, tokenizers.target)
        paths = _tokenizer_paths(self.path, tokenizers.shared)
        for file, tokenizer in zip(paths, pair, strict=False):
            with _explained(file):
                tokenizer.save(file)
        self.folder.push()
        values = self.config.to_dict() | {"digests": self.digests}
        self._write_text(self.path / RUN_CONFIG, json.dumps(values, indent=2) + "\n")
        self.folder.push()

    @property
    def path(self) -> Path:
        """The folder of its files; for a remote run, the local copy."""
        return self.folder.path

    def keep_origin(self, initial: "Run") -> None:
        """Copy the record of an import, if the run that provides the weights has one."""
        if initial.origin.is_file():
            with whole_file(self.origin) as temporary:
                shutil.copyfile(initial.origin, temporary)

    @property
    def weights(self) -> Path:
        """The file of the weights with the best validation result."""
        return self.path / "best.weights.h5"

    @property
    def resume_state(self) -> Path:
        """The file of every variable and of the epochs so far."""
        return self.path / RESUME_STATE

    @property
    def shortlist(self) -> Path:
        """The file of the pieces that may translate each source piece; few runs have one."""
        return self.path / SHORTLIST

    @property
    def metrics(self) -> Path:
        """The file with a line of JSON for each epoch."""
        return self.path / "metrics.jsonl"

    @property
    def result(self) -> Path:
        """The file that marks a finished training run."""
        return self.path / "result.json"

    @property
    def origin(self) -> Path:
        """The file that states the origin and the licence of an imported run."""
        return self.path / "imported.json"

    @property
    def tensorboard(self) -> Path:
        """The folder of TensorBoard's events."""
        return self.path / "tensorboard"

    @property
    def kind(self) -> ModelKind:
        """The row of `MODEL_KINDS` for this run's model."""
        return MODEL_KINDS[self.config.model.architecture]

    @functools.cached_property
    def tokenizers(self) -> Tokenizers:
        """The vocabularies; ValueError if they have changed since training."""
        one_file = self.config.tokenizer.shared and not (self.path / "source.model").is_file()
        paths = _tokenizer_paths(self.path, one_file)
        loaded = [load_tokenizer(path) for path in paths]
        tokenizers = Tokenizers(loaded[0], loaded[-1])
        if tokenizers.digests != {side: self.digests.get(side) for side in ("source", "target")}:
            raise ValueError(
                f"{paths[0]} is not the vocabulary that {self.folder} was trained with; restore "
                "the original file"
            )
        return tokenizers.with_languages(*self.pair)

    @property
    def languages(self) -> list[str] | None:
        """The languages that the recipe or, failing that, a multilingual vocabulary names."""
        return self.config.data.languages or self.tokenizers.languages

    @property
    def directions(self) -> list[tuple[str, ...]]:
        """The source and target languages that a tag before a sentence can choose."""
        return self.config.data.directions if self.tokenizers.source.tags else []

    def with_languages(self, source: str | None, target: str | None) -> "Run":
        """Return this run of a multilingual model for other languages, such as "en" or "eng_Latn".

        None keeps a language; an unknown language raises ValueError.
        """
        data = self.config.data
        is_own = [source, target] == data.languages and f"<{target}>" not in data.tags
        if is_own or (source is None and target is None):
            return self
        before = self.pair
        run = dataclasses.replace(self, pair=(source or before[0], target or before[1]))
        languages = run.tokenizers.languages or data.languages
        if known := data.directions:
            if run.pair not in known:
                pairs = ", ".join(map(" to ".join, known))
                raise ValueError(
                    f"the run does not translate {source} to {target}; choose one of {pairs}"
                )
            languages = [language for language in run.pair if language]
        data = data.replace(languages=languages)
        config = self.config.replace(data=data)
        return dataclasses.replace(run, config=config)

    def check_architecture(self, wanted: Architecture) -> None:
        """Raise ValueError if the run's model is of another kind than `wanted`."""
        if self.config.model.architecture != wanted:
            raise ValueError(
                f"{self.folder} contains {self.kind.description}; this requires "
                f"{MODEL_KINDS[wanted].description}"
            )

    def check_finished(self) -> None:
        """Raise ValueError unless training has finished."""
        if not self.result.is_file():
            raise ValueError(
                f"{self.folder} is not finished: it has no result.json; continue with `tfformer "
                "train --resume` first"
            )

    def check_texts(self, continued: "Run") -> None:
        """Raise ValueError if a text of `continued` is not the one that this run began with."""
        for digest, name in (("text", "training"), ("valid", "validation")):
            began = self.digests.get(digest)
            if began and began != continued.digests[digest]:
                raise ValueError(
                    f"the {name} text differs from the text that {self.folder} began with; restore "
                    "it or start a new run"
                )

    # --- Weights ------------------------------------------------------------------------------

    def load_model(self) -> Model:
        """Build the run's model in float32 with the best weights, after comparing all digests.

        Raises:
            FileNotFoundError: No validation has been reached yet.
            ValueError: The weights are damaged, or belong to another recipe or vocabulary.
        """
        shapes = self.check_weights()
        model = new_model(self.config.model, self.tokenizers)
        model.guided_alignment = self.config.training.guided_alignment
        if shapes != sorted(tuple(weight.shape) for weight in model.weights):
            raise self._bad_weights("its arrays are not the model's")
        try:
            model.load_weights(self.weights)
        except UNREADABLE as error:
            raise self._bad_weights(first_line(error)) from None
        return model

    def check_weights(self) -> list[tuple[int, ...]]:
        """Check best.weights.h5 without building the model; return the sorted shapes of its arrays.

        The errors are those of `load_model`.
        """
        if not self.weights.is_file():
            raise FileNotFoundError(
                f"{self.folder} has no best.weights.h5 yet: no validation has been reached; "
                "continue training"
            )
        try:
            model_digest = read_seal(self.weights)  # before h5py parses a byte
        except ValueError as error:
            raise self._bad_weights(str(error)) from None
        if model_digest != self.model_digest:
            raise self._bad_weights("it was trained with other model settings")
        shapes: list[tuple[int, ...]] = []
        is_whole = []

        def note(name: str, item: h5py.Group | h5py.Dataset) -> None:
            if isinstance(item, h5py.Dataset):
                shapes.append(item.shape or ())  # None if it contains nothing
                is_whole.append(item.id.get_storage_size() == item.nbytes)

        try:
            with h5py.File(self.weights) as file:
                file.visititems(note)
        except UNREADABLE as error:
            raise self._bad_weights(first_line(error)) from None
        count = sum(map(math.prod, shapes))
        expected = self.kind.parameters(self.config.model, self.tokenizers)
        if count != expected:
            raise self._bad_weights(f"{count:,} parameters, but the model has {expected:,}")
        # A small file may declare huge arrays, and the model would be built that large.
        if not all(is_whole):
            raise self._bad_weights("some of its values are missing")
        return sorted(shapes)

    def save_weights(self, model: SavesWeights) -> None:
        """Replace best.weights.h5, sealed with the digest of the model's settings.

        If it cannot be written, OSError is raised and the old weights remain.
        """
        with _explained(self.weights), whole_file(self.weights) as temporary:
            with error_keeping(temporary) as file:
                model.save_weights(file)
            seal(temporary, self.model_digest)
        self.folder.push()

    def _bad_weights(self, reason: str) -> ValueError:
        return ValueError(
            f"{self.weights} is damaged or belongs to another model ({reason}); train again"
        )

    # --- Shortlist ----------------------------------------------------------------------------

    def save_shortlist(self, table: IdRows) -> None:
        """Replace shortlist.npz, the table of `tfformer.inference.shortlist`."""
        with _explained(self.shortlist), whole_file(self.shortlist) as temporary:
            with temporary.open("wb") as file:
                np.savez(file, ids=table.ids, offsets=table.offsets)
            seal(temporary, self.model_digest)
        self.folder.push()

    def load_shortlist(self) -> IdRows | None:
        """Return the table of shortlist.npz; None if the run has none.

        ValueError: The file is damaged, or belongs to another model or vocabulary.
        """
        if not self.shortlist.is_file():
            return None
        try:
            if read_seal(self.shortlist) != self.model_digest:
                raise ValueError("it belongs to another run")
        except ValueError as error:
            raise ValueError(
                f"{self.shortlist} is damaged ({error}); delete it, and run `tfformer shortlist`"
            ) from None
        with np.load(self.shortlist, allow_pickle=False) as arrays:
            return IdRows(arrays["ids"], arrays["offsets"])

    def warn_of_shortlist(self, format: str) -> None:
        """Warn if the run has a shortlist, which exports in this format do not contain."""
        if self.shortlist.is_file():
            warnings.warn(
                f"{self.shortlist} is left out: {format} exports cannot contain a shortlist",
                stacklevel=3,
            )

    # --- State to resume from -----------------------------------------------------------------

    def save_resume_state(self, model: Model, history: Sequence[dict[str, Any]]) -> None:
        """Write resume.npz, with every variable of model and optimizer, and metrics.jsonl.

        If they cannot be written, OSError is raised and the old state remains.
        """
        lines = [json.dumps(epoch) for epoch in history]
        arrays = {
            f"variable_{n}": np.asarray(variable) for n, variable in enumerate(_variables(model))
        }
        with (
            _explained(self.resume_state),
            whole_file(self.resume_state) as temporary,
            temporary.open("wb") as file,
        ):
            np.savez(file, allow_pickle=False, history=np.array(lines, dtype=str), **arrays)
        self._write_text(self.metrics, "".join(line + "\n" for line in lines))
        self.folder.push()

    def load_resume_state(self, model: Model) -> list[dict[str, Any]]:
        """Restore the variables of model and optimizer, and return the history.

        The history is empty if the run was killed before its first save. ValueError is raised if
        the state is damaged, or if it is missing although epochs have ended.
        """
        history = self.history()
        if not self.resume_state.is_file():
            if self.weights.exists() or (self.metrics.exists() and self.metrics.stat().st_size):
                raise ValueError(
                    f"{self.resume_state} is missing, though epochs have ended; restore it or "
                    "start a new run"
                )
            return history
        variables = _variables(model)
        with self._open_resume_state() as state:
            arrays = [state[f"variable_{n}"] for n in range(len(variables))]
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)
        return history

    def history(self) -> list[dict[str, Any]]:
        """Return the epochs in the resume state; an empty list before the first has ended."""
        self.folder.pull()  # `open` does not pull the state
        if not self.resume_state.is_file():
            return []
        with self._open_resume_state() as state:
            return [json.loads(line) for line in state["history"]]

    def metrics_so_far(self) -> list[dict[str, Any]]:
        """Return the epochs that metrics.jsonl records. Unlike `history`, this needs no resume.npz.

        ValueError: The file is damaged.
        """
        if not self.metrics.is_file():
            return []
        try:
            lines = read_text(self.metrics, OWN_BYTES).splitlines()
            epochs = [json.loads(line) for line in lines]
            if not all(isinstance(epoch, dict) for epoch in epochs):
                raise ValueError("a line is not an object")
            return epochs
        except ValueError as error:
            raise _damaged(self.metrics, first_line(error)) from None

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write result.json: training has finished."""
        self._write_text(self.result, json.dumps(result, indent=2) + "\n")
        self.folder.push()

    @property
    def calibration(self) -> Calibration | None:
        """The calibration that an export has stored in result.json; None before.

        ValueError: The file is damaged.
        """
        if not self.result.is_file():
            return None
        try:
            values: Any = parse_json(read_text(self.result, OWN_BYTES))
            if "calibration" not in values:
                return None
            calibration = Calibration(**values["calibration"])
            if not calibration.temperature > 0:
                raise ValueError(f"the temperature {calibration.temperature} is not above 0")
        except (ValueError, TypeError) as error:
            raise _damaged(self.result, first_line(error)) from None
        return calibration

    def keep_calibration(self, calibration: Calibration) -> None:
        """Store the calibration of a finished run in result.json; OSError if this fails."""
        values = json.loads(self.result.read_text(encoding="utf-8"))
        self.finish(values | {"calibration": calibration._asdict()})

    def _write_text(self, file: Path, content: str) -> None:
        with _explained(file):
            write_text(file, content)

    @contextmanager
    def _open_resume_state(self) -> Iterator[np.lib.npyio.NpzFile]:
        try:
            # If NumPy opens a file itself and it is damaged, NumPy leaves it open.
            with (
                self.resume_state.open("rb") as file,
                np.load(file, allow_pickle=False) as state,
            ):
                yield state
        except DAMAGED_ZIP as error:
            raise ValueError(
                f"{self.resume_state} is damaged ({first_line(error)}); start a new run"
            ) from None


def first_line(error: Exception) -> str:
    """The first line of an error's text, which fits into a message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _damaged(file: Path, reason: str) -> ValueError:
    return ValueError(f"{file} is damaged ({reason}); restore it or train again")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn write errors of h5py and zipfile into one OSError with a remedy."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        has_state = (path.parent / RESUME_STATE).is_file()
        can_resume = has_state and (path.parent / RUN_CONFIG).is_file() and path.name != SHORTLIST
        remedy = "continue with --resume" if can_resume else "run the same command again"
        raise OSError(
            f"{path} cannot be written ({first_line(error)}); if the disk is full, free some "
            f"space, then {remedy}"
        ) from None


def _tokenizer_paths(folder: Path, shared: bool) -> list[Path]:
    names = ["tokenizer.model"] if shared else ["source.model", "target.model"]
    return [folder / name for name in names]


def _variables(model: Model) -> list[keras.Variable]:
    return [*model.variables, *model.optimizer.variables]


@contextmanager
def locked_for_new_run(path: str | Path) -> Iterator[None]:
    """Lock a folder for a new training run.

    If the block ends without a config.json, the files that it wrote are removed.

    Raises:
        FileExistsError: The folder is not empty.
        BlockingIOError: Another training run has locked the folder.
    """
    check_free(path)
    folder = folder_at(path)
    missing = [parent for parent in (folder.path, *folder.path.parents) if not parent.exists()]
    folder.path.mkdir(parents=True, exist_ok=True)
    try:
        with _held(folder):
            check_free(path)
            try:
                yield
            finally:
                if not (folder.path / RUN_CONFIG).exists():
                    for name in BEFORE_CONFIG - {LOCK}:
                        (folder.path / name).unlink(missing_ok=True)
                    folder.push()
    finally:
        for parent in missing:
            with suppress(OSError):  # not empty: the run is in it
                parent.rmdir()


@contextmanager
def locked_for_resume(path: str | Path) -> Iterator[Run]:
    """Lock an existing run, so that no other process continues it.

    A link among TensorBoard's events is refused, because it would not be followed.
    """
    folder = run_folder(path)
    with _held(folder):
        run = Run.open(path)
        for entry in (run.tensorboard, *run.tensorboard.rglob("*")):
            if entry.is_symlink():
                raise ValueError(f"{entry} is a link, which is not followed; remove it")
        yield run


def _held(folder: Folder) -> AbstractContextManager[None]:
    return folder.held(
        f"{folder} is being written by another training run; wait until it has ended, or stop it"
    )
