"""One run in memory: a model and an engine, nothing on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import _core, _progress, _threads
from ._table import Table


def solve(
    model: Mapping[str, Any],
    *,
    engine: str | Mapping[str, Any] = "ode",
    learning_rate: float | None = None,
    start: Mapping[str, Any] | None = None,
    times: Any = None,
    observe: Sequence[str] = ("loss",),
    dimension: int | None = None,
    replicas: int = 1,
    seed: int = 0,
    events: Sequence[Mapping[str, Any]] = (),
    data: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    record: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: Any = False,
) -> Table:
    """Predicts or simulates one problem and returns its table; nothing is written.

    `model`, `start`, `data`, `training` and `record` are the sections of a description, with its keys; `engine` is a name,
    or a dict with the name and its options (`{"engine": "ode", "tolerance": 1e-10}`). The other arguments are the keys that
    are used most and stand beside what the sections say. A wrong one raises `DescriptionError`.
    """
    description: dict[str, Any] = {
        "title": "solve",
        "model": model,
        "start": {} if start is None else start,
        "data": dict(data or {}),
        "training": dict(training or {}),
        "record": {"replicas": replicas, "seed": seed, "observe": list(observe)} | dict(record or {}),
        "run": [{"name": "solve"} | ({"engine": engine} if isinstance(engine, str) else dict(engine))],
    }
    if learning_rate is not None:
        description["training"]["learning-rate"] = learning_rate
    if dimension is not None:
        description["data"]["dimension"] = dimension
    if times is not None:
        description["record"]["times"] = times
    if events:
        description["record"]["event"] = list(events)
    job = _core.Description.of_data(description).prepare().solve(_threads.number(threads))
    with _progress.reporter(progress, f"solve with {description['run'][0].get('engine', 'ode')}") as report:
        return Table(job.wait(report))
