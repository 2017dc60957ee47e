"""Many experiments, as they finish, here or on a cluster."""

from __future__ import annotations

import os
import queue
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from . import _threads
from ._experiment import Experiment, Result, Size

# Seconds between two looks at futures that call nobody back.
ASK_EVERY = 0.2


def run_many(
    experiments: Mapping[Hashable, Experiment] | Iterable[Experiment],
    executor: Any = None,
    **options: Any,
) -> Iterator[tuple[Any, Result]]:
    """Runs many experiments and yields each with its result as it finishes.

    `experiments` is a mapping, whose keys come back beside the results, or a list, whose positions do. `executor` is
    anything with a `submit` whose futures have `result`, `done` and `cancel`: an executor of `concurrent.futures`, a client
    of Dask, an executor of submitit, … ; without one, threads of this process. `options` are those of `Experiment.run`;
    results go below the same folder, which workers elsewhere must share. The first error is raised, and what was not begun
    is not run.
    """
    if isinstance(experiments, Mapping):
        named: list[tuple[Any, Experiment]] = list(experiments.items())
    else:
        named = list(enumerate(experiments))
    for name, experiment in named:
        if not isinstance(experiment, Experiment):
            raise TypeError(f"the experiment `{name}` is of type {type(experiment).__name__}; expected an Experiment")
    options.setdefault("progress", False)
    if executor is not None:
        yield from _submit(named, executor, options)
        return
    threads = _threads.number(options.get("threads"))
    workers = max(1, min(threads, len(named)))
    # As many experiments at a time as there are threads, one thread each; a single one has all of them.
    options["threads"] = max(1, threads // workers)
    from concurrent.futures import ThreadPoolExecutor  # a part of the time of the import that few programs need

    with ThreadPoolExecutor(workers, thread_name_prefix="didact-run") as pool:
        yield from _submit(named, pool, options)


def _submit(named: list[tuple[Any, Experiment]], executor: Any, options: dict[str, Any]) -> Iterator[tuple[Any, Result]]:
    futures: list[Any] = []
    try:
        for _, experiment in named:
            futures.append(executor.submit(_run, experiment, options))
        for position in _as_finished(futures):
            yield named[position][0], futures[position].result()
    finally:
        for future in futures:
            if not future.done():
                future.cancel()


def _as_finished(futures: list[Any]) -> Iterator[int]:
    """Positions of futures in the order in which they finish. Those that call nobody back, as jobs of submitit, are asked."""
    heard: queue.SimpleQueue[int] = queue.SimpleQueue()
    silent = set()
    for position, future in enumerate(futures):
        if hasattr(future, "add_done_callback"):
            future.add_done_callback(lambda _, position=position: heard.put(position))
        else:
            silent.add(position)
    for _ in futures:
        while True:
            for position in sorted(silent):
                if futures[position].done():
                    silent.remove(position)
                    heard.put(position)
            try:
                yield heard.get(timeout=ASK_EVERY if silent else None)
                break
            except queue.Empty:
                continue


def _run(experiment: Experiment, options: dict[str, Any]) -> Result:
    return experiment.run(**options)


def run_sweep(
    experiment: Experiment,
    executor: Any = None,
    shares: int = 8,
    *,
    out: str | os.PathLike[str] = "runs",
    size: Size = "normal",
    seed: int | None = None,
    threads: int = 1,
) -> Result:
    """Runs one experiment in shares, each sent to the executor, and returns its result as `Experiment.run` does.

    The shares are those of `didact sweep work --shard i/n`: pieces dealt by their estimated cost, with the same bytes in the
    end however they are dealt. `executor` is as in `run_many`; workers elsewhere must see the folder `out` under the same
    name. `threads` are those of one share. What a share could not compute is tried once more here, in this process.
    """
    if not isinstance(experiment, Experiment):
        raise TypeError(f"the experiment is of type {type(experiment).__name__}; expected an Experiment")
    if shares < 1:
        raise ValueError(f"there are {shares} shares; give at least 1")
    folder = os.path.abspath(os.fspath(out))
    if executor is None:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_threads.number(None), thread_name_prefix="didact-share") as pool:
            return run_sweep(experiment, pool, shares, out=folder, size=size, seed=seed, threads=threads)
    futures: list[Any] = []
    try:
        for share in range(shares):
            futures.append(executor.submit(_work, experiment, folder, size, seed, (share, shares), threads))
        for position in _as_finished(futures):
            futures[position].result()
    finally:
        for future in futures:
            if not future.done():
                future.cancel()
    return experiment.run(out=folder, size=size, seed=seed, progress=False)


def _work(
    experiment: Experiment, out: str, size: Size, seed: int | None, share: tuple[int, int], threads: int
) -> tuple[int, int]:
    return experiment._description.prepare(size, seed).work(out, share[0], share[1], threads).wait()
