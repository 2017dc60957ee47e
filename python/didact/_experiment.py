"""Experiments, their jobs and their results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from . import _core, _progress, _threads
from ._errors import RunError
from ._figure import Figure
from ._table import Table

Size = Literal["quick", "normal", "full"]


class Experiment:
    """A description of an experiment, checked when it is made; it never changes.

    >>> e = Experiment({"title": "One unit", "model": {"family": "committee", "students": 1, "teachers": 1,
    ...                 "activation": "erf(z/sqrt2)"}, "training": {"learning-rate": 1.0},
    ...                 "start": {"q": [[0.5]], "r": [[0.1]]}, "record": {"times": [0, 5, 10]}})
    >>> e.replace({"training.learning-rate": 0.5}).title
    'One unit'

    A description that makes no sense raises `DescriptionError`. Arrays may stand for lists, and a NumPy function for an
    activation, a link of one direction or a transform of labels (see `sampled`).
    """

    __slots__ = ("_description",)
    _description: _core.Description

    def __init__(self, description: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_description", _core.Description.of_data(description))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Experiment:
        """Reads a file: TOML, or JSON if its name ends so."""
        return cls._of(_core.Description.read(os.fspath(path)))

    @classmethod
    def from_toml(cls, text: str, name: str = "description.toml") -> Experiment:
        """Reads TOML; `name` stands in messages."""
        return cls._of(_core.Description.of_text(text, name if name.endswith(".toml") else f"{name}.toml"))

    @classmethod
    def from_json(cls, text: str, name: str = "description.json") -> Experiment:
        """Reads JSON; `name` stands in messages."""
        return cls._of(_core.Description.of_text(text, name if name.endswith(".json") else f"{name}.json"))

    @classmethod
    def _of(cls, description: _core.Description) -> Experiment:
        made = object.__new__(cls)
        object.__setattr__(made, "_description", description)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("an experiment cannot be changed; `replace` makes another one")

    def __reduce__(self):
        name, text, changes = self._description.parts()
        # Files beside the description are found from another folder, too.
        return (_experiment_of_parts, (os.path.abspath(name) if os.path.exists(name) else name, text, changes))

    def replace(self, changes: Mapping[str, Any]) -> Experiment:
        """The experiment with other values of some keys, given by dotted paths: `{"training.learning-rate": 0.5}`.

        It is as if the description had been edited; what `size="quick"` changes comes after it.
        """
        return self._of(self._description.replace(changes))

    @property
    def title(self) -> str:
        """The title."""
        return self._description.prepare().title

    def describe(self, size: Size = "normal", seed: int | None = None) -> dict[str, Any]:
        """The whole description as plain data, with every default written out."""
        return self._description.prepare(size, seed).resolved()

    def check(self, size: Size = "normal") -> list[dict[str, Any]]:
        """What would run: `run`, `engine`, `point`, `steps`, `memory_bytes`, `seconds` (of one core, estimated)."""
        prepared = self._description.prepare(size)
        points = prepared.points()
        return [row | {"point": points[row["point"]]} for row in prepared.runs()]

    def remarks(self, size: Size = "normal") -> list[str]:
        """What models have to say of their runs before they start."""
        return self._description.prepare(size).remarks()

    def references(self) -> list[tuple[str, str, str]]:
        """What to cite: key, citation, and where to find it."""
        return self._description.prepare().references()

    def run(
        self,
        out: str | os.PathLike[str] = "runs",
        size: Size = "normal",
        threads: int | None = None,
        progress: Any = "auto",
        seed: int | None = None,
        fresh: bool = False,
    ) -> Result:
        """Runs everything that is not there yet below the folder `out`, and returns the result.

        Ctrl-C ends the run, keeps the tables that are finished and raises `KeyboardInterrupt`; the next `run` goes on from
        them. `threads` changes no number. `progress` is `"auto"` (a bar in a terminal, HTML in a notebook, else silent),
        `"bar"`, `"html"`, `False`, or a function that gets a dict at most ten times a second. `fresh` computes everything
        anew.
        """
        job = self.start(out=out, size=size, threads=threads, seed=seed, fresh=fresh)
        with _progress.reporter(progress, job.title) as report:
            return job._wait(None, report)

    def start(
        self,
        out: str | os.PathLike[str] = "runs",
        size: Size = "normal",
        threads: int | None = None,
        seed: int | None = None,
        fresh: bool = False,
    ) -> Job:
        """Starts a run and does not wait for it. A job that is forgotten is cancelled: keep it."""
        prepared = self._description.prepare(size, seed)
        return Job(prepared, prepared.start(os.fspath(out), _threads.number(threads), fresh))

    def missing(
        self, out: str | os.PathLike[str] = "runs", size: Size = "normal", seed: int | None = None
    ) -> list[tuple[str, dict[str, Any]]]:
        """The runs of which there is no table below `out` yet, each with its point: what `run` would compute."""
        prepared = self._description.prepare(size, seed)
        points = prepared.points()
        return [(run, points[point]) for run, point in prepared.missing(os.fspath(out))]

    def __eq__(self, other: object) -> bool:
        """True when both describe the same experiment: every key has the same value."""
        return isinstance(other, Experiment) and self.describe() == other.describe()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        prepared = self._description.prepare()
        runs, points = prepared.runs(), prepared.points()
        names = ", ".join(dict.fromkeys(f"{row['run']} ({row['engine']})" for row in runs)) or "none"
        sweep = f" at {len(points)} points" if len(points) > 1 else ""
        return f"Experiment `{prepared.title}`: runs {names}{sweep}"


def _experiment_of_parts(name: str, text: str, changes: str) -> Experiment:
    return Experiment._of(_core.Description.of_parts(name, text, changes))


class Job:
    """A run that is under way."""

    def __init__(self, prepared: _core.Prepared, job: _core.Job) -> None:
        self._prepared, self._job = prepared, job
        self._result: Result | None = None
        self._error: RunError | None = None

    @property
    def title(self) -> str:
        """The title of the experiment."""
        return self._prepared.title

    @property
    def progress(self) -> float:
        """The fraction of the work that is done, between 0 and 1."""
        return self._job.progress

    @property
    def done(self) -> bool:
        """True when the work has ended, in whatever way."""
        return self._job.done

    def cancel(self) -> None:
        """Asks the work to end. Tables that are finished are kept, and the same run goes on from them."""
        self._job.cancel()

    def wait(self, timeout: float | None = None) -> Result:
        """Waits and returns the result. Raises `TimeoutError` after `timeout` seconds, `Interrupted` if it was cancelled."""
        return self._wait(timeout, None)

    def _wait(self, timeout: float | None, report: Any) -> Result:
        if self._error is not None:
            raise self._error
        if self._result is None:
            try:
                self._result = Result(self._prepared, self._job.wait(timeout, report))
            except RunError as error:
                self._error = error
                raise
        return self._result

    def __repr__(self) -> str:
        return f"Job `{self.title}`: {'ended' if self.done else f'{100 * self.progress:.0f} %'}"


class Claim(NamedTuple):
    """A sentence of the description and what its check says."""

    says: str
    """The sentence."""
    verdict: str
    """`holds`, `within-bound`, `differs-from-print`, `not-judged` or `fails`."""
    evidence: str
    """The numbers."""
    source: str | None = None
    """Where the sentence stands."""

    @property
    def holds(self) -> bool:
        """True unless the check fails: what is computed is right, even if something else is printed."""
        return self.verdict != "fails"


class Measure(NamedTuple):
    """A number read off the results, at every point of the sweep, or once over all of them."""

    name: str
    """Its name."""
    values: np.ndarray
    """One number per point (or a single one); NaN where there is none."""
    errors: np.ndarray
    """Standard errors; 0 where there is none."""
    missing: tuple[str | None, ...]
    """Why there is no number, per point."""

    @property
    def value(self) -> float:
        """The number, where there is one point."""
        if len(self.values) != 1:
            raise ValueError(f"measure `{self.name}` has {len(self.values)} values, one per point; use `.values`")
        return float(self.values[0])

    @property
    def error(self) -> float:
        """Its standard error, where there is one point."""
        return float(self.errors[0]) if len(self.errors) == 1 else float("nan") * self.value


class Scan(NamedTuple):
    """A quantity over a grid: inputs and entries as arrays over its rows; NaN where there is no answer."""

    name: str
    """Its name."""
    inputs: dict[str, np.ndarray]
    """What was varied."""
    entries: dict[str, np.ndarray]
    """What was found."""
    missing: tuple[str | None, ...]
    """Why there is no answer, per row."""


class Result(Mapping[str, Table]):
    """A finished experiment: tables by the name of their run, claims, measures, scans and figures.

    `result["theory"]` is the table of a run; in a sweep `result.table("theory", point={"model.mu": 0.2})` is that of a point.

    Attributes
    ----------
    folder: where everything is kept, `report.html` among it.
    reused: True when it was found, not computed.
    taken_over: runs and scans that were taken over from other experiments beside it.
    healed: files that were found damaged and were made anew.
    claims: sentences of the description with their verdicts.
    measures: numbers read off the results, by name.
    failures: runs and points that failed, with reasons.
    figures: by name; they show themselves in a notebook.
    points: values of the swept keys at every point.
    """

    folder: Path
    reused: bool
    taken_over: int
    healed: list[str]
    claims: list[Claim]
    measures: dict[str, Measure]
    failures: list[str]
    figures: dict[str, Figure]
    points: list[dict[str, Any]]

    def __init__(self, prepared: _core.Prepared, finished: dict[str, Any]) -> None:
        self._prepared = prepared
        self.folder = Path(finished["folder"])
        self.reused, self.taken_over = finished["reused"], finished["taken_over"]
        self.failures, self.healed = finished["failures"], finished["healed"]
        self.claims = [
            Claim(claim["says"], claim["verdict"], claim["evidence"], claim.get("source") or None) for claim in finished["claims"]
        ]
        self.measures = {measure["name"]: _measure(measure) for measure in finished["measures"]}
        self.points = prepared.points()
        self._runs: dict[str, list[int]] = {}
        for row in prepared.runs():
            self._runs.setdefault(row["run"], []).append(row["point"])
        names, self._scans = prepared.names()

        def drawn(name: str) -> Figure:
            return Figure(self.folder, name, lambda: prepared.figure(str(self.folder), name))

        self.figures = {name: drawn(name) for name in names}

    def __reduce__(self):
        return (open_result, (str(self.folder.absolute()),))

    def table(self, run: str, point: Mapping[str, Any] | None = None) -> Table:
        """The table of a run, at the point whose swept keys have these values (all of them, or as many as single it out)."""
        if run not in self._runs:
            known = ", ".join(f"`{name}`" for name in self._runs)
            raise KeyError(f"no run `{run}`; there are {known}")
        wanted = dict(point or {})
        for key in wanted:
            if not any(key in values for values in self.points):
                known = ", ".join(f"`{name}`" for name in self.points[0]) or "none"
                raise KeyError(f"`{key}` is not swept; swept keys: {known}")
        found = [i for i in self._runs[run] if all(_same(self.points[i].get(k), v) for k, v in wanted.items())]
        if not found:
            raise KeyError(f"run `{run}` is not run at {wanted}")
        if len(found) > 1:
            raise KeyError(f"run `{run}` has {len(found)} points there; say more: point={self.points[found[0]]}")
        try:
            return Table(self._prepared.table(str(self.folder), run, found[0]))
        except KeyError:
            reasons = [failure for failure in self.failures if failure.startswith(f"{run} at ")]
            raise KeyError(f"run `{run}` has no table: {'; '.join(reasons) or 'it is missing in the folder'}") from None

    def tables(self, run: str) -> Iterator[tuple[dict[str, Any], Table]]:
        """Every point of a run with its table; points at which it failed are left out."""
        for index in self._runs[run]:
            try:
                yield self.points[index], Table(self._prepared.table(str(self.folder), run, index))
            except KeyError:
                continue

    def scan(self, name: str) -> Scan:
        """A scan."""
        if name not in self._scans:
            known = ", ".join(f"`{scan}`" for scan in self._scans) or "none"
            raise KeyError(f"no scan `{name}`; there are {known}")
        rows = self._prepared.scan(str(self.folder), name)
        inputs = {key: np.asarray([row[0][key] for row in rows]) for key in rows[0][0]}
        entries: dict[str, np.ndarray] = {}
        for entry in dict.fromkeys(key for row in rows for key in row[1] or {}):
            values = [(row[1] or {}).get(entry) for row in rows]
            numbers = all(value is None or isinstance(value, int | float) for value in values)
            entries[entry] = np.asarray(values, dtype=float if numbers else object)
        return Scan(name, inputs, entries, tuple(row[2] for row in rows))

    def to_xarray(self, run: str, column: str) -> Any:
        """The mean of a column of a run over the sweep: a DataArray with one dimension per swept key, and `time`."""
        import xarray

        grid = {key: list(dict.fromkeys(point[key] for point in self.points)) for key in self.points[0]}
        shape = [len(values) for values in grid.values()]
        data: np.ndarray | None = None
        time = None
        for point, table in self.tables(run):
            if data is None:
                time = table.time
                data = np.full([*shape, len(time)], np.nan)
            if len(table.time) != len(time) or (table.time != time).any():
                raise ValueError(f"the times of run `{run}` differ from point to point; use `tables`")
            data[tuple(grid[key].index(point[key]) for key in grid)] = table.mean(column)
        if data is None:
            raise KeyError(f"run `{run}` has no table")
        coordinates = grid | {"time": time}
        return xarray.DataArray(data, coords=coordinates, dims=list(coordinates), name=column, attrs={"run": run})

    def __getitem__(self, run: str) -> Table:
        return self.table(run)

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        lines = [f"Result in {self.folder}: runs {', '.join(self._runs) or 'none'}"]
        lines += [f"  {claim.verdict}: {claim.says}" for claim in self.claims]
        lines += [f"  failed: {failure}" for failure in self.failures]
        return "\n".join(lines)


def open_result(folder: str | os.PathLike[str]) -> Result:
    """The result in the folder of a finished run, as `Experiment.run` returned it."""
    path = Path(folder)
    finished = _core.Prepared.finished(str(path))
    if finished is None:
        raise FileNotFoundError(f"{path} is not the folder of a finished run")
    # The description in the folder has its size and seed applied already.
    return Result(_core.Description.read(str(path / "description.toml")).prepare(), finished)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return bool(a == b)


def _measure(measure: dict[str, Any]) -> Measure:
    values, errors, missing = [], [], []
    for found in measure["values"]:
        estimate = found.get("Ok")
        values.append(float("nan") if estimate is None or estimate["value"] is None else estimate["value"])
        errors.append(float("nan") if estimate is None or estimate["error"] is None else estimate["error"])
        why = found.get("Err")
        missing.append(why["left-out"] if isinstance(why, dict) else why)
    return Measure(measure["name"], np.asarray(values, dtype=float), np.asarray(errors, dtype=float), tuple(missing))
