"""The command `didact`: the same program as `cargo install --path crates/cli` gives."""

from __future__ import annotations

import signal
import sys

from . import _core


def main() -> int:
    """Runs the program with the arguments of this process and returns its exit code."""
    # The program hears signals itself; Python must not answer Ctrl-C once more when it is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.command(["didact", *sys.argv[1:]])
