"""The parts of a corpus, and the folder of their translations."""

import json

import pytest

from tfformer.corpora.parts import JOB, LOCK, find_parts, job_folder


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
    out = tmp_path / "out"
    assert held(out, {"model": "1"}) == {"model": "1"}
    (out / "a").touch()
    assert held(out, {"model": "1"}) == {"model": "1"}
    with pytest.raises(ValueError, match="by another model or with other settings"):
        held(out, {"model": "2"})
    with pytest.raises(FileExistsError, match=r"has no translation\.json of an earlier job"):
        held(tmp_path, {})
    with pytest.raises(FileExistsError, match="is a file, not a folder"):
        held(out / "a", {})
    (out / JOB).write_text("")
    with pytest.raises(ValueError, match=r"translation\.json is damaged .*another --output"):
        held(out, {"model": "1"})


def held(folder, settings):
    """Lock a folder, and return the settings stored in it."""
    with job_folder(folder, settings):
        return json.loads((folder / JOB).read_text())


def test_settings_by_which_nothing_was_translated_are_replaced(tmp_path):
    held(tmp_path / "out", {"beam_size": 7})
    (tmp_path / "out" / LOCK).touch()  # of a command that was killed
    assert held(tmp_path / "out", {"beam_size": 4}) == {"beam_size": 4}


def test_two_commands_do_not_share_a_folder(tmp_path):
    with (
        job_folder(tmp_path / "out", {"model": "1"}),
        pytest.raises(BlockingIOError, match="another command is translating into"),
    ):
        held(tmp_path / "out", {"model": "1"})
    assert [path.name for path in (tmp_path / "out").iterdir()] == [JOB]


def test_a_link_that_leads_nowhere_is_named(tmp_path):
    (tmp_path / "a.gz").touch()
    (tmp_path / "b.gz").symlink_to("/nowhere/b.gz")
    with pytest.raises(FileNotFoundError, match=r"b\.gz does not exist, or its link"):
        find_parts(f"{tmp_path}/*.gz", tmp_path / "out")
    with pytest.raises(FileNotFoundError, match=r"is a folder; use a file name pattern"):
        find_parts(str(tmp_path), tmp_path / "out")


@pytest.mark.parametrize("name", ["translation.json", "a.bad.tsv", ".lock"])
def test_the_names_of_a_jobs_own_files_are_refused(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match="has the name of a file that a job writes"):
        find_parts(str(tmp_path / name), tmp_path / "out")
