"""How teacher-student networks learn in high dimension: exact theory, finite-size simulation, and the two side by side.

>>> import didact, numpy as np
>>> t = didact.solve({"family": "committee", "students": 2, "teachers": 2, "activation": "erf(z/sqrt2)"},
...                  learning_rate=1.0, start={"q": 0.25 * np.eye(2), "r": 0.1 * np.eye(2)},
...                  times=np.linspace(0, 80, 41), observe=["loss", "R[0,0]"])
>>> t["loss"].shape
(1, 41)

A description goes in as a file, as text or as a dict; tables come back as NumPy arrays. Everything that a description can
say is there: the keys are those of the option reference.
"""

from ._core import version as _version
from ._errors import DescriptionError, Interrupted, RunError
from ._experiment import Claim, Experiment, Job, Measure, Result, Scan, open_result
from ._figure import Figure
from ._functions import Sampled, sampled
from ._lists import activations, compute, engines, families, functions, observables, quantities, schema
from ._many import run_many, run_sweep
from ._solve import solve
from ._table import Table

__version__ = _version()

__all__ = [
    "Claim",
    "DescriptionError",
    "Experiment",
    "Figure",
    "Interrupted",
    "Job",
    "Measure",
    "Result",
    "RunError",
    "Sampled",
    "Scan",
    "Table",
    "activations",
    "compute",
    "engines",
    "families",
    "functions",
    "observables",
    "open_result",
    "quantities",
    "run_many",
    "run_sweep",
    "sampled",
    "schema",
    "solve",
]
