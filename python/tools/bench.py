"""What the boundary costs: a call of `compute`, a call of `solve`, the import. Best of many, in microseconds.

    python python/tools/bench.py

The work inside is measured by the same calls from Rust: `cargo run --release -p didact --example boundary`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np

import didact


def best(call, times: int) -> float:
    """The shortest time of a call, in microseconds."""
    shortest = float("inf")
    for _ in range(times):
        begun = time.perf_counter_ns()
        call()
        shortest = min(shortest, time.perf_counter_ns() - begun)
    return shortest / 1e3


def main() -> None:
    model = {"family": "committee", "students": 2, "teachers": 2, "activation": "erf(z/sqrt2)"}
    start = {"q": 0.25 * np.eye(2), "r": 0.1 * np.eye(2)}
    times = np.linspace(0, 80, 41)

    def solve():
        didact.solve(model, learning_rate=1.0, start=start, times=times, observe=["loss", "R[0,0]"], dimension=1000)

    def imported(what):
        code = f"import time; t = time.perf_counter_ns(); import {what}; print(time.perf_counter_ns() - t)"
        runs = [int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout) for _ in range(10)]
        return min(runs) / 1e3

    numbers = {
        "compute": best(lambda: didact.compute("committee/plateau", M=2), 2000),
        "solve": best(solve, 300),
        "import didact": imported("didact"),
        "import numpy": imported("numpy"),
    }
    print(json.dumps({name: round(value, 1) for name, value in numbers.items()}, indent=1))


if __name__ == "__main__":
    main()
