"""The description of the device, for a made-up list of devices."""

from types import SimpleNamespace

import pytest
import tensorflow as tf

from tfformer.runtime import devices


@pytest.fixture
def with_gpus(monkeypatch):
    """Make TensorFlow list GPUs with these names."""

    def see(*names):
        gpus = [SimpleNamespace(name=name) for name in names]
        monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: gpus)
        details = tf.config.experimental
        monkeypatch.setattr(details, "get_device_details", lambda gpu: {"device_name": gpu.name})

    return see


@pytest.mark.parametrize(
    ("names", "cores", "line"),
    [
        ((), {0}, "1 processor core"),
        ((), {0, 5}, "2 processor cores"),
        (("Made Up 1",), {0}, "Made Up 1"),
        (("Made Up 1", "Made Up 1"), {0}, "2 x Made Up 1"),
        (("Made Up 1", "Made Up 2"), {0}, "Made Up 1, Made Up 2"),
    ],
)
def test_the_device_has_one_line(with_gpus, monkeypatch, names, cores, line):
    with_gpus(*names)
    monkeypatch.setattr(devices.os, "sched_getaffinity", lambda process: cores)
    assert devices.device_line() == line


@pytest.mark.parametrize(
    ("has_driver", "names", "visible", "is_warned"),
    [
        (True, (), None, True),
        (True, (), "0", True),
        (True, (), "-1", False),
        (True, ("Made Up 1",), None, False),
        (False, (), None, False),
    ],
)
def test_a_gpu_that_tensorflow_does_not_see_has_a_remedy(
    with_gpus, monkeypatch, tmp_path, has_driver, names, visible, is_warned
):
    with_gpus(*names)
    driver = tmp_path / "version"
    if has_driver:
        driver.touch()
    monkeypatch.setattr(devices, "NVIDIA_DRIVER", driver)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    warning = devices.unused_gpu()
    assert (warning is not None) == is_warned
    assert warning is None or "pip install -e '.[gpu]'" in warning
