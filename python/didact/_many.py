"""Many experiments, as they finish, here or on a cluster."""

from __future__ import annotations

import queue
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from . import _threads
from ._experiment import Experiment, Result


def run_many(
    experiments: Mapping[Hashable, Experiment] | Iterable[Experiment],
    executor: Any = None,
    **options: Any,
) -> Iterator[tuple[Any, Result]]:
    """Runs many experiments and yields each with its result as it finishes.

    `experiments` is a mapping, whose keys come back beside the results, or a list, whose positions do. `executor` is
    anything with a `submit` whose futures have `add_done_callback` and `result`: an executor of `concurrent.futures`, a
    client of Dask, … ; without one, threads of this process. `options` are those of `Experiment.run`; results go below the
    same folder, which workers elsewhere must share. The first error is raised, and what was not begun is not run.
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
    done: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
    futures = []
    try:
        for name, experiment in named:
            future = executor.submit(_run, experiment, options)
            futures.append(future)
            future.add_done_callback(lambda future, name=name: done.put((name, future)))
        for _ in futures:
            name, future = done.get()
            yield name, future.result()
    finally:
        for future in futures:
            future.cancel()


def _run(experiment: Experiment, options: dict[str, Any]) -> Result:
    return experiment.run(**options)
