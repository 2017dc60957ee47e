"""Fluctuation bands and optimal protocols, from Python as from a description."""

import json

import numpy as np

import didact

LINEAR = {
    "title": "One linear unit",
    "model": {"family": "committee", "students": 1, "teachers": 1, "activation": "linear"},
    "data": {"dimension": 400},
    "start": {"q": [[1.0]], "r": [[0.0]]},
}


def test_a_run_has_its_standard_deviation_beside_it(tmp_path):
    experiment = didact.Experiment(
        LINEAR
        | {
            "training": {"learning-rate": 0.9},
            "record": {"times": [0, 1, 4], "observe": ["loss"]},
            "run": [{"name": "theory", "engine": "ode", "fluctuations": True}],
        }
    )
    table = experiment.run(out=tmp_path)["theory"]
    assert list(table) == ["loss", "sd(loss)"]
    # Exactly: d Var[loss] = 2 theta^2 alpha loss^2, theta = eta (2 - eta).
    exact = np.sqrt(2 * 0.99**2 * np.array([0, 1, 4]) / 400) * table["loss"][0]
    np.testing.assert_allclose(table["sd(loss)"][0], exact, rtol=1e-3)


def test_a_protocol_is_found_and_trains_a_run(tmp_path):
    experiment = didact.Experiment(
        LINEAR
        | {
            "training": {"learning-rate": 0.5, "label-noise": 0.5},
            "record": {"times": [0, 3, 6], "observe": ["loss"], "replicas": 16, "seed": 5},
            "optimise": [
                {
                    "name": "best rate",
                    "controls": [{"key": "training.learning-rate", "knots": 6, "bounds": [0, 2]}],
                    "objective": {"minimise": "loss", "at": 6},
                    "starts": 1,
                }
            ],
            "run": [{"name": "theory", "engine": "ode", "protocol": "best rate"}],
        }
    )
    results = experiment.run(out=tmp_path)
    search, theory = results["optimise-best-rate"], results["theory"]
    summary = json.loads(search.notes[0])
    assert summary["entries"]["objective"] < summary["entries"]["constant"]
    np.testing.assert_allclose(theory["loss"][0, -1], summary["entries"]["objective"], rtol=1e-6)
    # Greedy is optimal here, and the rate falls once the noise of the labels dominates.
    assert search["learning-rate"][0, 0] > search["learning-rate"][0, -1] > 0
