"""What goes in: arrays of any kind, plain data, and everything that is none."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

import didact

DESCRIPTION = {
    "title": "One unit",
    "model": {"family": "committee", "students": 1, "teachers": 1, "activation": "erf(z/sqrt2)"},
    "training": {"learning-rate": 1.0},
    "start": {"q": [[0.5]], "r": [[0.1]]},
    "record": {"times": [0, 5]},
}


def test_arrays_of_every_kind_are_read():
    plain = didact.Experiment(DESCRIPTION | {"record": {"times": [0.0, 1.0, 2.0]}})
    every_other = (np.arange(6.0) / 2)[::2]
    assert not every_other.flags.contiguous
    locked = np.array([0.0, 1.0, 2.0])
    locked.flags.writeable = False
    for times in (every_other, locked, np.array([0, 1, 2], dtype=np.int16), np.array([0, 1, 2], dtype=np.float32), (0, 1, 2)):
        other = didact.Experiment(DESCRIPTION | {"record": {"times": times}})
        assert [run["steps"] for run in other.check()] == [run["steps"] for run in plain.check()]
        assert list(map(float, other.describe()["record"]["times"])) == [0.0, 1.0, 2.0]
    fortran = np.asfortranarray([[0.25, 0.1], [0.1, 0.25]])
    model = {"family": "committee", "students": 2, "teachers": 1, "activation": "relu"}
    start = {"q": fortran.T[::-1, ::-1], "r": np.zeros((2, 1))}
    assert didact.Experiment(DESCRIPTION | {"model": model, "start": start}).describe()["start"]["q"][0] == [0.25, 0.1]
    assert didact.Experiment(DESCRIPTION | {"record": {"times": [0, 1], "replicas": np.int64(3)}})


def test_arrays_that_come_out_are_ours():
    call = dict(learning_rate=1.0, start={"q": [[0.5]], "r": [[0.1]]}, times=[0, 1, 2])
    first = didact.solve(DESCRIPTION["model"], **call)
    assert first["loss"].flags.owndata or first["loss"].base is None or first["loss"].flags.writeable
    kept = first["loss"].copy()
    first["loss"][:] = 0.0
    assert (didact.solve(DESCRIPTION["model"], **call)["loss"] == kept).all()
    with pytest.raises(AttributeError, match="cannot be changed"):
        first.time = None


@pytest.mark.parametrize(
    ("changes", "message", "key"),
    [
        ({"training": {"learning-rate": float("nan")}}, "`training.learning-rate` is nan", None),
        ({"training": {"learning-rate": np.inf}}, "`training.learning-rate` is inf", None),
        ({"start": {"q": np.array([[np.nan]]), "r": [[0.1]]}}, "`start.q.0.0` is nan", None),
        ({"training": {"learning-rat": 1.0}}, "unknown key `learning-rat`", None),
        ({"training": {"learning-rate": "fast"}}, "a learning rate is a number", None),
        ({"training": object()}, "`training` is of type object", None),
        ({"title": b"bytes"}, "`title` is of type bytes", None),
        ({1: 2}, "keys are texts", None),
        ({"record": {"times": [0, 5], "seed": 2**70}}, "at most 64 bits", None),
        ({"record": {"times": [0, 5], "replicas": 10**9}}, "`replicas` is 1000000000; the largest possible", "record.replicas"),
        ({"run": [{"name": "a", "engine": "odee"}]}, "odee", None),
        ({"data": {"spectrum": {"kind": "file", "path": Path("nowhere.csv")}}}, "nowhere.csv", None),
    ],
)
def test_what_is_no_description_is_refused_in_words(changes, message, key):
    with pytest.raises(didact.DescriptionError) as error:
        didact.Experiment(DESCRIPTION | changes)
    assert message in str(error.value)
    assert key is None or error.value.key == key


def test_data_that_contains_itself_is_refused():
    endless: dict = {}
    endless["set"] = endless
    with pytest.raises(didact.DescriptionError, match="nested more than 64"):
        didact.Experiment(DESCRIPTION | endless)


def test_errors_say_message_key_line_and_hint():
    text = 'title = "a"\n[training]\nlearning-rat = 1.0\n'
    with pytest.raises(didact.DescriptionError) as error:
        didact.Experiment.from_toml(text, name="mine.toml")
    assert isinstance(error.value, ValueError)
    assert (error.value.message, error.value.line) == ("unknown key `learning-rat`", 3)
    assert error.value.hint == "did you mean `learning-rate`?" and "mine.toml:3:1" in str(error.value)
    with pytest.raises(didact.DescriptionError) as error:
        didact.Experiment(DESCRIPTION).replace({"training.learning-rat": 1.0})
    assert error.value.key == "training.learning-rat" and error.value.line is None
    with pytest.raises(didact.DescriptionError, match="unknown size `fast`"):
        didact.Experiment(DESCRIPTION).run(size="fast")
    with pytest.raises(didact.DescriptionError, match="expected a dict"):
        didact.Experiment([1, 2])
    with pytest.raises(ValueError, match="threads is 0"):
        didact.solve(DESCRIPTION["model"], learning_rate=1.0, start=DESCRIPTION["start"], times=[0, 1], threads=0)
    with pytest.raises(didact.RunError, match="cannot write to"):
        didact.Experiment(DESCRIPTION).run(out="/dev/null/x")


DESCRIPTIONS = sorted([*(ROOT / "examples").glob("*.toml"), *(ROOT / "papers").glob("*/[!p]*.toml")])


@pytest.mark.parametrize("path", DESCRIPTIONS, ids=[f"{path.parent.name}/{path.stem}" for path in DESCRIPTIONS])
def test_every_description_comes_back_from_a_dict(path):
    whole = didact.Experiment.load(path).describe()
    assert didact.Experiment(whole).describe() == whole
    assert didact.Experiment.from_json(json.dumps(whole)).describe() == whole


numbers = st.floats(0.01, 2.0)
descriptions = st.fixed_dictionaries(
    {
        "title": st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20),
        "model": st.fixed_dictionaries(
            {
                "family": st.just("committee"),
                "students": st.just(2),
                "teachers": st.just(1),
                "activation": st.sampled_from(["erf(z/sqrt2)", "relu", "tanh(x) + 0.1*x^3", "He3", "poly(1, -2, 0.5)"]),
            }
        ),
        "training": st.fixed_dictionaries({"learning-rate": numbers}, optional={"batch": st.integers(1, 8)}),
        "start": st.fixed_dictionaries({"q": numbers.map(lambda q: [[q, 0], [0, q]]), "r": st.just([[0.01], [0.0]])}),
        "data": st.fixed_dictionaries({"dimension": st.integers(10, 10**6)}),
        "record": st.fixed_dictionaries(
            {"times": st.lists(st.integers(0, 100), min_size=2, unique=True).map(sorted)},
            optional={
                "replicas": st.integers(1, 64),
                "seed": st.integers(0, 2**62),
                "observe": st.lists(st.sampled_from(["loss", "R[0,0]", "Q[*,*]", "R[0,0]^2"]), min_size=1, unique=True),
            },
        ),
        "run": st.lists(st.sampled_from(["ode", "reduced", "direct"]), min_size=1, unique=True).map(
            lambda engines: [{"name": f"by-{engine}", "engine": engine} for engine in engines]
        ),
    }
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(descriptions)
def test_any_description_round_trips(description):
    experiment = didact.Experiment(description)
    whole = experiment.describe()
    assert didact.Experiment(whole) == experiment and didact.Experiment(json.loads(json.dumps(whole))).describe() == whole


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from([None, *DESCRIPTION]), anything)
def test_nothing_that_goes_in_is_more_than_a_wrong_description(section, value):
    description = value if section is None else DESCRIPTION | {section: value}
    try:
        didact.Experiment(description)
    except didact.DescriptionError as error:
        assert str(error)
