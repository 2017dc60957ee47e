"""Runs notebooks from top to bottom in an empty folder and says how long each took; an error ends it.

    python python/tools/execute.py python/notebooks/*.ipynb [--write]

With `--write` the outputs are kept in the notebooks.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def main(arguments: list[str]) -> None:
    write = "--write" in arguments
    for path in (Path(argument).resolve() for argument in arguments if argument != "--write"):
        notebook = nbformat.read(path, as_version=4)
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}})
            client.execute()
        print(f"{path.name}: {time.monotonic() - begun:.1f} s", flush=True)
        if write:
            # Outputs are kept, times of the cells and the version of the interpreter are not.
            notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
            for cell in notebook.cells:
                cell.metadata = {}
                cell.pop("id", None)
            nbformat.write(notebook, path)


if __name__ == "__main__":
    main(sys.argv[1:])
