"""Functions of NumPy where a description has a formula: activations, links, label transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core
from ._errors import DescriptionError

# Fields of more than 40 are as good as never seen: twelve standard deviations at an overlap of 11.
_REACH = 40.0


class Sampled:
    """A function that was sampled once and is known by its fit; `sampled` makes it.

    It stands for a formula: `str(f)` is one in x, `f("z1")` one in another variable, to be put into larger formulas
    (`f"{f('z1')} * z2"`). `f(array)` cannot be asked for; the function that was sampled has the values.

    Attributes
    ----------
    kinks: where the function or its slope jumps, named or found.
    error, relative_error: largest error of the fit at points that it had not seen, and the same relative to the size of the
        function there.
    panels, samples: number of panels of the fit, and of values that were asked for.
    """

    def __init__(self, parts: dict[str, Any], title: str) -> None:
        self._name: str = parts["name"]
        self.kinks: list[float] = parts["kinks"]
        self.error: float = parts["error"]
        self.relative_error: float = parts["relative_error"]
        self.panels: int = parts["panels"]
        self.samples: int = parts["samples"]
        self.title = title

    def __call__(self, variable: str) -> str:
        """The formula of the function of another formula, such as `z1` or `2*y`."""
        if not isinstance(variable, str):
            raise TypeError("a sampled function takes the text of a formula, such as `z1`; call the function itself for values")
        return f"{self._name}({variable})"

    def __str__(self) -> str:
        return self("x")

    def __repr__(self) -> str:
        kinks = f", kinks at {', '.join(f'{kink:g}' for kink in self.kinks)}" if self.kinks else ""
        return f"Sampled `{self.title}`: {self.panels} panels, relative error {self.relative_error:.1e}{kinks}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sampled) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)


def sampled(function: Callable[[Any], Any], *, reach: float = _REACH, kinks: Sequence[float] | None = None) -> Sampled:
    """Samples a function of one argument on |x| <= `reach`, so that it can stand in a description.

    The function is called here, with arrays, about thirty times, and never again: no worker thread calls Python. It is
    fitted by Chebyshev series on panels, and the fit is checked at points that it has not seen; an error above 1e-11 of the
    size of the function is refused. `kinks` are the points at which it or its slope jumps; they are looked for unless given
    (`[]` says that there are none). Beyond `reach` the function goes on as a straight line.

    The numbers of the fit are part of the description, so that results are found again exactly when they are the same.
    """
    named = None if kinks is None else [float(kink) for kink in kinks]
    parts = _core.fit(function, float(reach), named)
    return Sampled(parts, getattr(function, "__name__", None) or type(function).__name__)


def checked_values(function: Callable[[Any], Any], points: np.ndarray) -> np.ndarray:
    """The values of a function, one real number per point."""
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(function(points.copy()))
    except Exception as error:
        name = getattr(function, "__name__", repr(function))
        message = f"the function `{name}` failed when it was sampled: {type(error).__name__}: {error}"
        hint = "it is called with an array of floats; use NumPy functions, or `numpy.vectorize(f)`"
        raise DescriptionError(f"{message}\nhint: {hint}", message=message, hint=hint) from error
    if values.shape != points.shape or values.dtype.kind not in "fiub":
        message = f"the function returned {values.dtype} of shape {values.shape} for floats of shape {points.shape}"
        hint = "it must return one real number for each number"
        raise DescriptionError(f"{message}\nhint: {hint}", message=message, hint=hint)
    return np.ascontiguousarray(values, dtype=np.float64)


def formula_of(function: Any, path: str) -> str:
    """The formula of whatever can be called and stands in a description, in the variable of its key."""
    made = function if isinstance(function, Sampled) else sampled(function)
    # Transforms of labels are formulas in y, links of one direction in z, activations in x.
    key = path.rsplit(".", 1)[-1]
    return made({"labels": "y", "link": "z"}.get(key, "x"))
