"""Download a checkpoint from the Hugging Face hub into the cache of `huggingface_hub`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfformer.checkpoints.foreign_files import optional_object

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
KINDS = ("marian", "m2m_100")  # model_type in config.json
WITHOUT_WEIGHTS = [
    *("README.md", "LICENSE*", "LICENCE", "COPYING"),
    *("config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json"),
    *("special_tokens_map.json", "vocab.json", "target_vocab.json", "sentencepiece.bpe.model"),
    *("*.spm", "*.yml"),
]
WEIGHTS = [  # alternatives; the first that a model has is downloaded
    ["model.safetensors", "model-*-of-*.safetensors", "model.safetensors.index.json"],
    ["pytorch_model.bin", "pytorch_model-*-of-*.bin", "pytorch_model.bin.index.json"],
    ["*.npz"],
    ["*.bin"],
]


def is_hub_name(model: str | Path) -> bool:
    """Return whether a name looks like a hub model: one slash, and no file or folder of that name.

    Example:
        >>> is_hub_name("Helsinki-NLP/opus-mt-en-de"), is_hub_name("opus-mt-en-de")
        (True, False)
    """
    return bool(NAME.fullmatch(str(model))) and not Path(model).exists()


def fetch_model(name: str, revision: str | None = None) -> Path:
    """Return the folder in the cache with the files that an import needs; download missing files.

    `revision` is a branch, tag or commit; None for the branch `main`. The environment variables of
    `huggingface_hub` apply, such as HF_TOKEN, HF_HOME, HF_ENDPOINT and HF_HUB_OFFLINE. ValueError:
    the model is unknown, gated or of a kind that cannot be imported. OSError: the hub does not
    answer, or refuses.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import logging
    from huggingface_hub.utils.tqdm import disable_progress_bars

    logging.set_verbosity_error()
    if not sys.stderr.isatty():
        disable_progress_bars()
    with _one_line_errors(name, revision):
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=WITHOUT_WEIGHTS))
        _check_kind(name, folder)
        for patterns in WEIGHTS:
            snapshot_download(name, revision=revision, allow_patterns=patterns)
            if any(file for pattern in patterns for file in folder.glob(pattern)):
                return folder
    raise ValueError(
        f"{name} has no weights that can be imported; supported files are .safetensors, .bin and "
        ".npz"
    )


def _check_kind(name: str, folder: Path) -> None:
    kind = optional_object(folder / "config.json").get("model_type", "marian")
    if kind not in KINDS:
        raise ValueError(
            f"{name} has the model_type {kind!r}; supported are {' and '.join(KINDS)} (M2M100 and "
            "NLLB), and Marian's .npz and .bin files"
        )


@contextmanager
def _one_line_errors(name: str, revision: str | None) -> Iterator[None]:
    import httpx2
    from huggingface_hub import constants, errors

    try:
        yield
    except errors.GatedRepoError:
        raise ValueError(
            f"{name} is gated: accept its terms at {constants.ENDPOINT}/{name}, and set HF_TOKEN"
        ) from None
    except errors.RepositoryNotFoundError:
        raise ValueError(
            f"{name} is not a folder, a zip file or a model on {constants.ENDPOINT}; correct the "
            "name, or set HF_TOKEN for a private model"
        ) from None
    except errors.RevisionNotFoundError:
        raise ValueError(
            f"{name} has no revision {revision!r}; use a branch, a tag or a commit"
        ) from None
    except errors.LocalEntryNotFoundError:
        raise ConnectionError(
            f"{constants.ENDPOINT} cannot be reached, and {name} is not in the cache "
            f"{constants.HF_HUB_CACHE}; connect to the network, or pass a folder"
        ) from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        remedy = "set a valid HF_TOKEN, or unset it" if status in (401, 403) else "try again"
        raise ConnectionError(
            f"{constants.ENDPOINT} answers {status} for {name}; {remedy}"
        ) from None
    except httpx2.HTTPError as error:
        raise ConnectionError(
            f"the download of {name} was interrupted ({type(error).__name__}); try again"
        ) from None
