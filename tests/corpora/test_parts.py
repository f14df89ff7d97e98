"""The parts of a corpus, and the folder of their translations."""

import json

import pytest

from tfformer.corpora.parts import JOB, begin_job, find_parts


def test_parts_come_in_the_order_of_their_names(tmp_path):
    for name in ("b.gz", "a.gz", "c.txt"):
        (tmp_path / name).touch()
    (tmp_path / "d.gz").mkdir()
    parts = find_parts(f"{tmp_path}/*.gz", tmp_path / "out")
    assert [part.source.name for part in parts] == ["a.gz", "b.gz"]
    assert [part.output for part in parts] == [tmp_path / "out" / name for name in ("a.gz", "b.gz")]


def test_a_part_is_done_when_its_translation_is_there(tmp_path):
    (tmp_path / "a").touch()
    [part] = find_parts(f"{tmp_path}/a", tmp_path / "out")
    assert not part.is_done
    part.output.parent.mkdir()
    part.output.touch()
    assert part.is_done


def test_parts_of_one_name_are_refused(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a").touch()
    with pytest.raises(ValueError, match="have the same name"):
        find_parts(f"{tmp_path}/*/a", tmp_path / "out")


def test_a_corpus_is_not_its_own_translation(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(ValueError, match="is the folder of the corpus itself"):
        find_parts(f"{tmp_path}/a", tmp_path)


def test_devices_are_no_parts(tmp_path):
    with pytest.raises(ValueError, match="is a device or a pipe"):
        find_parts("/dev/zero", tmp_path)


def test_a_job_goes_on_in_its_folder_and_in_no_other(tmp_path):
    begin_job(tmp_path / "out", {"model": "1", "beam_size": None})
    (tmp_path / "out" / "a").touch()
    begin_job(tmp_path / "out", {"model": "1", "beam_size": None})
    assert json.loads((tmp_path / "out" / JOB).read_text())["model"] == "1"
    with pytest.raises(ValueError, match="by another model or with other settings"):
        begin_job(tmp_path / "out", {"model": "2", "beam_size": None})
    with pytest.raises(FileExistsError, match=r"has no translation\.json of an earlier job"):
        begin_job(tmp_path, {})
    with pytest.raises(FileExistsError, match="is a file, not a folder"):
        begin_job(tmp_path / "out" / "a", {})
