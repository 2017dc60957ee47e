"""Functions of NumPy in descriptions."""

import math

import numpy as np
import pytest

import didact

START = {"q": [[0.25, 0], [0, 0.25]], "r": [[0.1, 0], [0, 0.1]]}


def committee(activation, **more):
    model = {"family": "committee", "students": 2, "teachers": 2, "activation": activation}
    call = {"learning_rate": 0.5, "start": START, "times": [0, 2, 10, 30], "observe": ["loss", "R[0,0]"]} | more
    return didact.solve(model, **call)


def test_a_sampled_activation_learns_as_the_named_one():
    for function, name in ((np.tanh, "tanh"), (lambda x: np.maximum(x, 0), "relu")):
        own, named = committee(function), committee(name)
        assert own["loss"] == pytest.approx(named["loss"], rel=1e-6), name
    erf = np.vectorize(lambda x: math.erf(x / math.sqrt(2)))
    assert committee(erf)["R[0,0]"] == pytest.approx(committee("erf(z/sqrt2)")["R[0,0]"], rel=1e-6)


def test_simulations_take_sampled_functions():
    own, named = (committee(f, engine="reduced", dimension=200, replicas=2, times=[0, 2]) for f in (np.tanh, "tanh"))
    assert own["loss"] == pytest.approx(named["loss"], rel=1e-9)


def test_the_fit_is_reported():
    f = didact.sampled(lambda x: np.abs(x - 0.5) + np.sin(x))
    assert f.kinks == pytest.approx([0.5], abs=1e-12) and f.relative_error < 1e-12 and f.samples > 0
    assert "kinks at 0.5" in repr(f)
    named = didact.sampled(lambda x: np.abs(x - 0.5), kinks=[0.5])
    assert named.kinks == [0.5]
    assert didact.sampled(np.tanh) == didact.sampled(np.tanh) != didact.sampled(np.sin)
    with pytest.raises(TypeError, match="takes the text of a formula"):
        f(np.zeros(3))


def test_functions_stand_for_links_and_label_transforms():
    link = didact.sampled(lambda z: z**3 - 3 * z)
    model = {"family": "multi-index", "students": 1, "directions": 1, "activation": "relu", "link": link}
    description = {
        "title": "x",
        "model": model,
        "training": {"learning-rate": 0.1, "scaling": "plain"},
        "record": {"times": [0, 1], "clock": "steps"},
        "data": {"dimension": 50, "samples-per-dimension": 2.0},
        "run": [{"name": "a", "engine": "full-batch"}],
    }
    experiment = didact.Experiment(description)
    assert experiment.describe()["model"]["link"] == link("z")
    model |= {"directions": 2, "link": f"{link('z1')} * z2"}
    assert didact.Experiment(description | {"model": model})


def test_the_digest_covers_the_numbers(tmp_path):
    base = {"title": "own", "training": {"learning-rate": 1.0}, "start": START, "record": {"times": [0, 1]}}
    model = {"family": "committee", "students": 2, "teachers": 2}
    run = lambda f: didact.Experiment(base | {"model": model | {"activation": f}}).run(out=tmp_path)  # noqa: E731
    first = run(np.tanh)
    assert run(lambda x: np.tanh(x)).folder == first.folder and run(np.tanh).reused
    assert run(lambda x: np.tanh(1.0000001 * x)).folder != first.folder


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (np.log, "it must be finite where it is sampled"),
        (lambda x: np.exp(x * x), "smaller `reach`"),
        (lambda x: x.sum(), "one real number for each number"),
        (lambda x: x + 1j, "complex128"),
        (lambda x: math.tanh(x), "numpy.vectorize"),
        (lambda x: x + np.random.default_rng().normal(), "different values"),
        (lambda x: np.sign(x - 0.5), "jumps by 2"),
    ],
)
def test_what_is_no_function_is_refused(function, message):
    with pytest.raises(didact.DescriptionError) as error:
        committee(function)
    assert message in str(error.value)


def test_no_worker_calls_python():
    calls = []

    def counted(x):
        calls.append(len(x))
        return np.tanh(x)

    f = didact.sampled(counted)
    before = len(calls)
    committee(f, engine="direct", dimension=100, times=[0, 1])
    assert len(calls) == before < 80
