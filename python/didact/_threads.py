"""How many threads a call uses. Results never depend on it."""

from __future__ import annotations

import os
import sys

from . import _core


def number(threads: int | None) -> int:
    """`threads`, else `DIDACT_THREADS`, else one inside a worker process of a pool, else all cores of this process."""
    if threads is not None:
        return int(threads)
    wanted = os.environ.get("DIDACT_THREADS")
    if wanted:
        try:
            return int(wanted)
        except ValueError:
            raise ValueError(f"DIDACT_THREADS is `{wanted}`; expected a whole number") from None
    return 1 if _inside_a_worker() else _core.default_threads()


def _inside_a_worker() -> bool:
    # multiprocessing, concurrent.futures, joblib (loky) and the nanny of Dask all start processes with a parent, in which
    # multiprocessing has been imported; here it is not, since that takes milliseconds.
    process = sys.modules.get("multiprocessing.process")
    if (process is not None and process.parent_process() is not None) or "LOKY_WORKER" in os.environ:
        return True
    distributed = sys.modules.get("distributed.worker")
    if distributed is None:
        return False
    try:
        distributed.get_worker()
    except (ValueError, AttributeError):
        return False
    return True
