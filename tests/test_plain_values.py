"""Text of others becomes plain values, or one short line says why not."""

import json
import os
import random
import time

import pytest

from tfformer.config import Config, find_recipe, read_recipe
from tfformer.plain_values import MAX_BYTES, parse_json, parse_yaml, read_text, shown

BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 1000 + "]" * 1000, "is nested more than 20 deep; flatten it"),
        ("[" * 60_000, "is nested more than 20 deep; flatten it"),
        ("!!int ''", "is not YAML"),
        ("!!bool abc", "is not YAML"),
        ("!!float []", "is not YAML"),
        ("!!timestamp abc", "is not YAML"),
        ("!!python/object/apply:os.system [ls]", "is not YAML"),
        ("!!float " + ":".join(["9"] * 5000), "is not YAML"),
        ("9" * 5000, "is not YAML"),
        ("? [a]\n: b", "is not YAML"),
        ("&a [*a]", "has more than 10,000 values; shorten it"),
        (BOMB, "has more than 10,000 values; shorten it"),
        (MERGES, "has more than 10,000 values; shorten it"),
        ("[" + "a," * 11_000 + "]", "has more than 10,000 values; shorten it"),
        ('{folder: "a\\0b"}', r"'a\\x00b' holds a character that no text has; leave it out"),
        ('["\\ud800", b]', r"'\\ud800' holds a character that no text has; leave it out"),
        ("model: {a: 1}\ndata: {}\nmodel: {b: 2}", "'model' twice; keep one of them"),
        ("a: [{b: {c: 1}, d: 2, b: 3}]", "'b' twice; keep one of them"),
        ("a" * 70_000, "has more than 65,536 characters; give the right value"),
    ],
)
def test_hostile_yaml_is_refused_quickly_with_a_short_line(text, message):
    start = time.process_time()
    with pytest.raises(ValueError, match=message) as refusal:
        parse_yaml(text, "r.yaml")
    assert time.process_time() - start < 5
    assert len(str(refusal.value)) < 400


def test_anchors_and_merges_of_a_usual_size_are_read():
    text = "a: &a {x: 1, y: [1, 2]}\nb: {<<: *a, x: 3}\nc: [*a, *a]"
    value = parse_yaml(text, "r.yaml")
    assert value["b"] == {"x": 3, "y": [1, 2]}
    assert value["c"] == [value["a"]] * 2


def test_a_key_may_stand_in_another_mapping_and_be_a_value():
    text = "a: {a: a, b: [a, a, {a: b}]}\nb: {a: {b: a}}\nc: &c {a: b}\nd: {<<: *c, a: c}"
    assert parse_yaml(text, "r.yaml") == {
        "a": {"a": "a", "b": ["a", "a", {"a": "b"}]},
        "b": {"a": {"b": "a"}},
        "c": {"a": "b"},
        "d": {"a": "c"},
    }


def test_json_nested_too_deeply_is_refused():
    with pytest.raises(ValueError, match="collections are nested too deeply"):
        parse_json("[" * 60_000)


@pytest.mark.parametrize("path", ["/dev/zero", "/", "/dev/stdin"])
def test_a_device_or_a_folder_is_not_read(path):
    with pytest.raises(ValueError, match="is not a regular file; give a file"):
        read_text(find_recipe("phrasebook").parent / path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "r.yaml")
    with pytest.raises(ValueError, match="is not a regular file"):
        read_recipe(tmp_path / "r.yaml")


def test_a_large_file_is_not_read(tmp_path):
    (tmp_path / "r.yaml").write_text("#" * (MAX_BYTES + 1))
    with pytest.raises(ValueError, match="has more than 65,536 bytes; give the right file"):
        read_recipe(tmp_path / "r.yaml")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": {"dropout": 10**400}}, r"model.dropout=a number of 1,329 bits|must be a number"),
        ({"model": {"d_model": 10**400}}, r"model.d_model=1000.*0000 must be from 2"),
        ({"model": {"dropout": 16**60_000}}, r"model.dropout=a number of 240,001 bits must be a"),
        ({"model": {"dropout": [16**60_000]}}, r"model.dropout=a list must be a number"),
        (
            {"model": {"norm": "m" * 10**6}},
            r"model.norm='mmm.*mmm' must be one of post, pre",
        ),
        ({"model": "m" * 10**6}, r"section 'model' must hold keys, not 'mmm"),
        ({"model": {"m" * 10**6: 1}}, r"section 'model' has an unknown key 'mmm"),
        ({"model": {"preset": "m" * 10**6}}, r"model.preset='mmm.*mmm' is not known"),
        ({"training": {"learning_rate": float("nan")}}, r"learning_rate=nan must be from 0"),
    ],
)
def test_large_values_are_refused_in_short_messages(values, message):
    with pytest.raises(ValueError, match=message) as refusal:
        Config.from_dict(values)
    assert len(str(refusal.value)) < 500


def test_long_overrides_are_refused_in_short_messages():
    path = find_recipe("phrasebook")
    for override in ("x" * 10**6, "training.epochs=" + "[" * 60_000, "x" * 10**6 + ".y=1"):
        with pytest.raises(ValueError, match=r"--set|recipe has an unknown key") as refusal:
            read_recipe(path, [override])
        assert len(str(refusal.value)) < 600


def test_a_long_name_of_a_recipe_is_refused_in_a_short_message():
    with pytest.raises(ValueError, match="is neither a file nor built in") as refusal:
        find_recipe("x" * 10**5)
    assert len(str(refusal.value)) < 400


def test_a_value_is_shown_whole_where_it_fits():
    assert shown(["a.en", "a.de"]) == "['a.en', 'a.de']"
    assert len(shown(["x" * 1000] * 1000)) <= 120


PIECES = [
    "!!int", "!!bool x", "!!binary", "[", "{", "&a", "*a", "9" * 400, "1e999", ".nan", "null", "\t",
    "\x00", "\ud7ff", "model", "data:", "- ", "? ", ": ", "<<: *a", "true", "2024-13-45",
    "0x" + "f" * 300,
]  # fmt: skip


def mutated(text: str, draw: random.Random) -> str:
    """The text with one to four places cut out, doubled or replaced."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(text) + 1)
        stop = min(len(text), start + draw.choice((0, 1, 1, 8, 60)))
        text = text[:start] + draw.choice(("", text[start:stop] * 2, *PIECES)) + text[stop:]
    return text


@pytest.mark.parametrize("seed", range(3))
def test_a_mutated_recipe_is_read_or_refused(tmp_path, seed):
    draw, path = random.Random(seed), tmp_path / "r.yaml"
    texts = [
        find_recipe(name).read_text() for name in ("phrasebook", "multi30k-en-de", "phrasebook-lm")
    ]
    messages = []
    for _ in range(100):
        path.write_bytes(mutated(draw.choice(texts), draw).encode("utf-8", "surrogatepass"))
        start = time.process_time()
        try:
            read_recipe(path, [mutated("training.epochs=3", draw)])
        except (ValueError, OSError) as error:
            messages.append(str(error))
        assert time.process_time() - start < 5
    assert len(messages) > 20
    assert max(map(len, messages)) < 1000


@pytest.mark.parametrize("seed", range(3))
def test_a_recipe_of_mutated_values_is_read_or_refused(seed):
    draw, messages = random.Random(seed), []
    strange = [
        None,
        True,
        -1,
        0,
        10**400,
        1e308,
        float("nan"),
        "",
        "x",
        [],
        ["a", "b"],
        {},
        {"a": 1},
    ]
    for _ in range(300):
        values = json.loads(json.dumps(Config().to_dict()))
        for _ in range(draw.randint(1, 3)):
            section = draw.choice(list(values))
            if isinstance(values[section], dict) and values[section]:
                values[section][draw.choice(list(values[section]))] = draw.choice(strange)
            else:
                values[section] = draw.choice(strange)
        try:
            assert Config.from_dict(values).checked()
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 200
    assert max(map(len, messages)) < 1000
