"""What there is by name, and predictions that are not trajectories."""

from __future__ import annotations

from typing import Any

from . import _core, _threads


def compute(quantity: str, /, *, threads: int | None = None, **inputs: Any) -> dict[str, Any]:
    """The named entries of a quantity such as `committee/plateau`.

    Inputs are keywords: `compute("committee/plateau", M=2)`. Lists of numbers in the answer are arrays. `quantities()` says
    which there are; a wrong input raises `DescriptionError`.
    """
    return _core.compute(quantity, inputs, _threads.number(threads))


def quantities() -> dict[str, dict[str, Any]]:
    """Every quantity by its path: `summary`, `inputs` (name, type, required, default, about) and `outputs`."""
    return {row.pop("quantity"): row for row in _core.quantities()}


def families() -> dict[str, str]:
    """Every model family with one line about it."""
    return dict(_core.lists("families"))


def engines() -> dict[str, str]:
    """Every engine with one line about it."""
    return dict(_core.lists("engines"))


def activations() -> dict[str, str]:
    """Every activation with one line about it; any formula in x is one too."""
    return dict(_core.lists("activations"))


def functions() -> dict[str, str]:
    """What formulas are made of."""
    return dict(_core.lists("functions"))


def observables() -> dict[str, str]:
    """What can be observed in every model; expressions of them can too."""
    return dict(_core.lists("observables"))


def schema() -> dict[str, Any]:
    """The JSON schema of descriptions."""
    return _core.schema()
