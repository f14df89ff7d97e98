"""XLA flags in addition to the user's, and programs that a second process need not compile."""

import os
import subprocess
import sys

import pytest

from tfformer.runtime import tensorflow as xla

TRITON = "--xla_gpu_enable_triton_gemm=false"


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A home folder, and a GPU among the devices."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.delenv("TF_XLA_FLAGS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    (tmp_path / "nvidia0").touch()
    (tmp_path / "information").write_text("Model: \t Made Up 1\nBus Location: 0\n")
    monkeypatch.setattr(xla, "GPU_DEVICES", str(tmp_path / "nvidia[0-9]*"))
    monkeypatch.setattr(xla, "HARDWARE", (str(tmp_path / "info*"),))
    return tmp_path


def flags():
    xla.set_xla_flags()
    return os.environ.get("XLA_FLAGS", ""), os.environ.get("TF_XLA_FLAGS", "")


def test_the_flags_are_set_once_and_the_folder_is_private():
    set_flags = flags()
    assert set_flags == (TRITON, f"--tf_xla_persistent_cache_directory={xla.cache_folder()}")
    assert flags() == set_flags
    assert xla.cache_folder().stat().st_mode & 0o777 == 0o700


def test_the_users_flags_are_kept(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/cuda")
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_persistent_cache_directory=/mine")
    assert flags() == (
        f"--xla_gpu_cuda_data_dir=/cuda {TRITON}",
        "--tf_xla_persistent_cache_directory=/mine",
    )
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_enable_triton_gemm=true")
    assert flags()[0] == "--xla_gpu_enable_triton_gemm=true"
    monkeypatch.setenv("XLA_FLAGS", "/home/me/flags.txt")
    assert flags()[0] == "/home/me/flags.txt"


def test_nothing_is_stored_without_a_gpu_or_a_folder(machine, monkeypatch):
    (machine / "caches").write_text("no folder")
    assert flags()[1] == ""
    (machine / "caches").unlink()
    (machine / "nvidia0").unlink()
    assert flags()[1] == ""
    assert not (machine / "caches").exists()


def test_other_hardware_has_another_folder(machine):
    first = xla.cache_folder()
    (machine / "information").write_text("Model: \t Made Up 1\nBus Location: 7\n")
    assert xla.cache_folder() == first
    (machine / "information").write_text("Model: \t Made Up 2\nBus Location: 0\n")
    assert xla.cache_folder() != first


PROGRAM = """
import sys
from tfformer.runtime import tensorflow as xla
xla.GPU_DEVICES = "/proc/cpuinfo"  # so that a processor's programs are stored
from tfformer.runtime.tensorflow import import_tensorflow
import_tensorflow()
import tensorflow as tf
triple = tf.function(lambda x: tf.nn.softmax(3 * x), jit_compile=True)
print(float(triple(tf.ones([4]))[0]), tf.function.__module__)
"""


@pytest.mark.nightly
def test_a_second_process_compiles_nothing(machine, monkeypatch):
    """XLA would overwrite the stored program if it compiled the program again."""
    compiled = []
    for _ in range(2):
        answer = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout.startswith("0.25 ")
        programs = sorted((machine / "caches").rglob("xla_compile_cache__*"))
        compiled.append([(path.name, path.stat().st_mtime_ns) for path in programs])
    assert len(compiled[0]) == 1
    assert compiled[1] == compiled[0]
