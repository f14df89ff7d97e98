"""Read untrusted files, JSON objects and zips, with limits on their size; download from the hub.

Every fault in a file raises a one-line ValueError that names the file.
"""

from __future__ import annotations

import errno
import json
import lzma
import re
import shutil
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
MAX_JSON_BYTES = 256 * 1024**2  # a vocabulary of two million pieces takes 60 MB
MAX_ZIP_BYTES = 32 * 1024**3  # all files together; the largest OPUS models take 4 GB
MAX_ZIP_FILES = 1_000
MAX_RATIO = 100  # no file in a checkpoint compresses this well
SMALL = 1024**2
LOCAL_HEADER = 30  # bytes of a zip's header before a member, without its name
DAMAGE = (  # errors that the readers of zips, arrays and pickles raise for malformed content
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError),
    *(LookupError, TypeError, AttributeError, SyntaxError, OverflowError, MemoryError),
    UnicodeDecodeError,
)
DAMAGE_NUMBERS = (None, errno.EINVAL)  # errno of bzip2's errors, and of a negative offset
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
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


@contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """Turn every error that a damaged file causes into a ValueError that names the file.

    System errors, such as a full disk or missing permissions, are raised unchanged.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in DAMAGE_NUMBERS:
            raise
        raise ValueError(f"{path} is damaged (OSError); copy the file again") from None
    except DAMAGE as error:
        raise ValueError(
            f"{path} is damaged ({type(error).__name__}); copy the file again"
        ) from None
    except ValueError as error:
        reason = str(error).splitlines()[0][:200]
        remedy = "" if ";" in reason else "; copy the file again"  # NumPy's errors state none
        raise ValueError(f"{path}: {reason}{remedy}") from None


@contextmanager
def told_by_keys(file: Path, keys: Mapping[str, str]) -> Iterator[None]:
    """In errors about recipe settings, name the checkpoint's file and key instead.

    `keys` maps the recipe's setting, without its section, to the file's key.

    Example:
        >>> with told_by_keys(Path("config.json"), {"beam_size": "num_beams"}):
        ...     raise ValueError("decoding.beam_size=0 must be from 1")
        Traceback (most recent call last):
            ...
        ValueError: config.json: num_beams=0 must be from 1
    """
    try:
        yield
    except ValueError as error:
        message = re.sub(
            r"(?:[a-z]+\.)*(\w+)(?==)",
            lambda setting: keys.get(setting[1], setting[0]),
            str(error),
        )
        raise ValueError(f"{file}: {message}") from None


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of UTF-8 text.

    It raises ValueError if the file is missing, too large or not JSON, or if it contains anything
    but an object, half a surrogate pair, or a repeated key.
    """
    if not path.is_file():
        raise ValueError(f"{path} is missing; copy the whole folder of the checkpoint")
    if path.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(
            f"{path} has more than {MAX_JSON_BYTES:,} bytes; check that it is a checkpoint's file"
        )
    try:
        text = path.read_bytes().decode("utf-8")
        values = json.loads(text, object_pairs_hook=_without_doubles)
        if SURROGATE.search(text):
            json.dumps(values, ensure_ascii=False).encode("utf-8")  # fails for a lone surrogate
    except (ValueError, RecursionError) as error:  # or an integer has too many digits
        reason = str(error).splitlines()[0][:100]
        raise ValueError(f"{path} is not JSON ({reason}); copy the file again") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path} must contain a JSON object, not a {type(values).__name__}")
    return values


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    entries: dict[str, object] = {}
    for name, value in pairs:
        if name in entries:
            raise ValueError(f"it names {name!r} twice")
        entries[name] = value
    return entries


def optional_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; an empty dictionary if the file is missing."""
    return read_object(path) if path.is_file() else {}


def write_object(path: Path, values: Mapping[str, object]) -> None:
    """Write a JSON object."""
    text = json.dumps(values, indent=2, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def is_zip(path: Path) -> bool:
    """Return whether a file exists and its first bytes are those of a zip."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PK\3\4"


def unpack(path: Path, folder: Path) -> None:
    """Unpack a zip, such as OPUS distributes, into a new folder.

    An untrusted zip may contain paths outside the folder, links, or terabytes of data. It raises
    ValueError unless the zip contains only plain files of limited size, without folders in their
    names.
    """
    with naming_damage(path), zipfile.ZipFile(path) as archive:
        _check_plain_files(archive.infolist())
        check_members(archive)
        folder.mkdir()
        for entry in archive.infolist():
            with archive.open(entry) as member, (folder / entry.filename).open("xb") as file:
                shutil.copyfileobj(member, file)


def _check_plain_files(entries: list[zipfile.ZipInfo]) -> None:
    """Raise ValueError if the zip is larger than any model or a member is not a plain file."""
    if len(entries) > MAX_ZIP_FILES:
        raise ValueError(
            f"it contains {len(entries):,} files, but a model has at most {MAX_ZIP_FILES:,}; use a "
            "model's zip"
        )
    size = sum(entry.file_size for entry in entries)
    if size > MAX_ZIP_BYTES:
        raise ValueError(
            f"it unpacks to {size:,} bytes, but a model has at most {MAX_ZIP_BYTES:,}; use a "
            "model's zip"
        )
    for entry in entries:
        name = entry.filename
        if Path(name).name != name or "\\" in name or name in ("", ".", ".."):
            raise ValueError(f"{name[:80]!r} is not a plain file name; use the published zip")
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
            raise ValueError(f"{name[:80]!r} is a link or a device; use the published zip")


def check_members(archive: zipfile.ZipFile) -> None:
    """Raise ValueError for a zip with a damaged, duplicate or suspiciously compressed member.

    Every member is read, one block at a time.
    """
    names = archive.namelist()
    if len(set(names)) < len(names):
        raise ValueError("it contains two members with the same name")
    for entry in archive.infolist():
        if entry.file_size > max(SMALL, MAX_RATIO * entry.compress_size):
            raise ValueError(f"{entry.filename[:80]} is compressed more than {MAX_RATIO} times")
    damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged[:80]} is damaged")


def member_offset(path: Path, entry: zipfile.ZipInfo) -> int | None:
    """Return the offset of a member's data in the zip; None if it is compressed."""
    if entry.compress_type != zipfile.ZIP_STORED:
        return None
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        header = file.read(LOCAL_HEADER)
    if len(header) < LOCAL_HEADER or header[:4] != b"PK\3\4":
        raise ValueError("one of its members has no header")
    name_length, extra_length = struct.unpack("<2H", header[26:])
    return entry.header_offset + LOCAL_HEADER + name_length + extra_length


def is_hub_name(model: str | Path) -> bool:
    """Return whether a name looks like a hub model: one slash, and no file or folder of that name.

    Example:
        >>> is_hub_name("Helsinki-NLP/opus-mt-en-de"), is_hub_name("opus-mt-en-de")
        (True, False)
    """
    return bool(HUB_NAME.fullmatch(str(model))) and not Path(model).exists()


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
        kind = optional_object(folder / "config.json").get("model_type", "marian")
        if kind not in KINDS:
            raise ValueError(
                f"{name} has the model_type {kind!r}; supported are {' and '.join(KINDS)} (M2M100 "
                "and NLLB), and Marian's .npz and .bin files"
            )
        for patterns in WEIGHTS:
            snapshot_download(name, revision=revision, allow_patterns=patterns)
            if any(file for pattern in patterns for file in folder.glob(pattern)):
                return folder
    raise ValueError(
        f"{name} has no weights that can be imported; supported files are .safetensors, .bin and "
        ".npz"
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
