"""What the tests share."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import didact

ROOT = Path(__file__).resolve().parents[2]

TWO_UNITS = """
title = "Two erf units"
model = { family = "committee", students = 2, teachers = 2, activation = "erf(z/sqrt2)" }
data = { dimension = 1000 }
training = { learning-rate = 1.0 }
start = { q = [[0.25, 0], [0, 0.25]], r = [[0.1, 0], [0, 0.1]] }
run = [{ name = "theory", engine = "ode" }, { name = "sgd", engine = "reduced" }]
measure = [{ name = "end", kind = "value-at", run = "theory", observable = "loss", time = 20 }]
claim = [{ says = "the loss is small", measure = "end", check = { at-most = 0.1 } }]

[record]
times = { from = 0, to = 20, points = 11 }
observe = ["loss", "R[0,0]"]
replicas = 4
event = [
    { name = "low", observable = "loss", level = 0.05, crossing = "falls" },
    { name = "never", observable = "loss", level = 1e-9, crossing = "falls" },
]

[[figure]]
name = "loss"
panel = [{ y = { label = "loss", scale = "log" }, series = [{ run = "theory" }, { run = "sgd", style = "markers" }] }]
"""


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def two_units():
    return didact.Experiment.from_toml(TWO_UNITS)


@pytest.fixture
def command():
    """The command line, in a process of its own."""

    def run(*arguments, cwd=ROOT):
        plain = {name: value for name, value in os.environ.items() if name != "DIDACT_THREADS"}
        return subprocess.run(
            [sys.executable, "-m", "didact", *map(str, arguments)], cwd=cwd, env=plain, capture_output=True, text=True
        )

    return run
