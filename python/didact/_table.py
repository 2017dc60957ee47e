"""What one run observed: named columns over time, one row per replica."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core

if TYPE_CHECKING:
    import pandas
    import polars
    import xarray

Array = np.ndarray


class Table(Mapping[str, Array]):
    """Columns over time. `table["loss"]` is an array (replica, time), NaN after a replica has ended.

    Attributes
    ----------
    time: saved times, in units of `clock`.
    columns: all columns by name.
    events: first passages by name, one time per replica; NaN is censored (it had not happened when the replica ended).
    outcomes: how every replica ended, a dict with `kind`: `completed`, `stopped` (by an event, at a time) or `diverged`.
    stats: the work of the integrator for every replica; empty for simulations.
    engine, clock, notes: which engine, which unit of time, and remarks of the engine.
    """

    engine: str
    clock: str
    time: Array
    columns: Mapping[str, Array]
    events: Mapping[str, Array]
    outcomes: list[dict[str, Any]]
    stats: list[dict[str, Any]]
    notes: list[str]

    __slots__ = ("engine", "clock", "time", "columns", "events", "outcomes", "stats", "notes")

    def __init__(self, parts: Mapping[str, Any]) -> None:
        for name in self.__slots__:
            value = parts[name]
            set_once = object.__setattr__
            set_once(self, name, MappingProxyType(dict(value)) if name in ("columns", "events") else value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a table cannot be changed; copy the array: `table[{name!r}].copy()`")

    def __reduce__(self):
        parts = {name: getattr(self, name) for name in self.__slots__}
        parts["columns"], parts["events"] = dict(self.columns), dict(self.events)
        return (Table, (parts,))

    def __getitem__(self, name: str) -> Array:
        try:
            return self.columns[name]
        except KeyError:
            known = ", ".join(f"`{column}`" for column in self.columns)
            raise KeyError(f"no column `{name}`; there are {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __eq__(self, other: object) -> bool:
        """True when all numbers are the same to the last bit."""
        if not isinstance(other, Table):
            return NotImplemented
        same = all(getattr(self, name) == getattr(other, name) for name in ("engine", "clock", "outcomes", "stats", "notes"))
        arrays = [(self.time, other.time)]
        for name in ("columns", "events"):
            own, others = getattr(self, name), getattr(other, name)
            same = same and list(own) == list(others)
            arrays += [(own[key], others[key]) for key in own] if same else []
        return same and all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in arrays)

    __hash__ = None  # type: ignore[assignment]

    @property
    def replicas(self) -> int:
        """Number of replicas."""
        return len(self.outcomes)

    def mean(self, column: str) -> Array:
        """Mean over the replicas that reached each time."""
        return _core.mean_and_error(self[column])[0]

    def error(self, column: str) -> Array:
        """Standard error of the mean (0 for a single replica)."""
        return _core.mean_and_error(self[column])[1]

    def _long(self) -> dict[str, Array]:
        """One row per replica and time."""
        replicas, times = self.replicas, len(self.time)
        frame = {"replica": np.repeat(np.arange(replicas), times), self.clock: np.tile(self.time, replicas)}
        return frame | {name: column.reshape(-1) for name, column in self.columns.items()}

    def to_pandas(self) -> pandas.DataFrame:
        """A frame with one row per replica and time, indexed by both."""
        import pandas

        return pandas.DataFrame(self._long()).set_index(["replica", self.clock])

    def to_polars(self) -> polars.DataFrame:
        """A frame with one row per replica and time."""
        import polars

        return polars.DataFrame(self._long())

    def to_xarray(self) -> xarray.Dataset:
        """A dataset with the dimensions `replica` and `time`; events have the dimension `replica`."""
        import xarray

        columns = {name: (("replica", "time"), column) for name, column in self.columns.items()}
        events = {f"event:{name}": (("replica",), times) for name, times in self.events.items()}
        coordinates = {"replica": np.arange(self.replicas), "time": ("time", self.time, {"clock": self.clock})}
        return xarray.Dataset(columns | events, coords=coordinates, attrs={"engine": self.engine, "clock": self.clock})

    def __repr__(self) -> str:
        span = f"{self.time[0]:g} to {self.time[-1]:g}" if len(self.time) else "none"
        names = ", ".join(self.columns)
        ends = {}
        for outcome in self.outcomes:
            ends[outcome["kind"]] = ends.get(outcome["kind"], 0) + 1
        how = ", ".join(f"{count} {kind}" for kind, count in ends.items())
        text = f"Table of `{self.engine}`: {self.replicas} replicas ({how}), {len(self.time)} times ({self.clock} {span})\n"
        text += f"  columns: {names}"
        return text + (f"\n  events: {', '.join(self.events)}" if self.events else "")
