"""
Descriptions in, tables out.
"""

from _typeshed import Incomplete, SupportsGetItem
from os import PathLike
from typing import Any, SupportsFloat, SupportsIndex, final

__all__ = ["Description", "Job", "Prepared", "ShareJob", "SolveJob", "command", "compute", "default_threads", "fit", "lists", "mean_and_error", "quantities", "schema", "version"]

@final
class Description:
    """
    A description and changes to it, checked as a whole.
    """
    @staticmethod
    def of_data(data: Any) -> Description:
        """
        Takes plain data.
        """
    @staticmethod
    def of_parts(name: str, text: str, changes: str) -> Description:
        """
        From what `parts` gave.
        """
    @staticmethod
    def of_text(text: str, name: str) -> Description:
        """
        Reads a text; the name decides between TOML and JSON and stands in messages.
        """
    def parts(self, /) -> tuple[str, str, str]:
        """
        Name, text and changes, all as text.
        """
    def prepare(self, /, size: str = "normal", seed: SupportsIndex | None = None) -> Prepared:
        """
        The experiment at a size, ready to run.
        """
    @staticmethod
    def read(path: str | PathLike[str]) -> Description:
        """
        Reads a file.
        """
    def replace(self, /, changes: Any) -> Description:
        """
        The description with other values of some keys, given by their dotted paths.
        """

@final
class Job:
    """
    An experiment that runs.
    """
    def cancel(self, /) -> None:
        """
        Asks the work to end. Tables that are finished are kept.
        """
    @property
    def done(self, /) -> bool:
        """
        True when the work has ended, in whatever way.
        """
    @property
    def progress(self, /) -> float:
        """
        The fraction of the work that is done, between 0 and 1.
        """
    def wait(self, /, timeout: SupportsFloat | SupportsIndex | None = None, report: Any | None = None) -> dict:
        """
        Waits, and returns what the experiment found. `report` is called with the fraction that is done.
        """

@final
class Prepared:
    """
    An experiment that has been checked, at one size.
    """
    def figure(self, /, folder: str | PathLike[str], name: str) -> Any:
        """
        A figure of a finished folder as data.
        """
    @staticmethod
    def finished(folder: str | PathLike[str]) -> dict | None:
        """
        What a finished folder says of claims, failures and measures; `None` when it is not finished.
        """
    @property
    def folder_name(self, /) -> str:
        """
        The name of the folder of its results.
        """
    def missing(self, /, out: str | PathLike[str]) -> list[tuple[str, int]]:
        """
        The runs of which there is no table below a folder, each with the index of its point.
        """
    def names(self, /) -> tuple[list[str], list[str]]:
        """
        Names of the figures and of the scans.
        """
    def points(self, /) -> list[Any]:
        """
        The values of the swept keys at every point.
        """
    def references(self, /) -> list[tuple[str, str, str]]:
        """
        What to cite: key, citation and where to find it.
        """
    def remarks(self, /) -> list[str]:
        """
        What models have to say of their runs before they start.
        """
    def resolved(self, /) -> Any:
        """
        The whole description with every default written out.
        """
    def runs(self, /) -> list[Any]:
        """
        Every run at every point: name, engine, index of the point and estimated cost.
        """
    def scan(self, /, folder: str | PathLike[str], name: str) -> Any:
        """
        The rows of a scan in a finished folder: inputs, entries (or none), and why there are none.
        """
    def solve(self, /, threads: SupportsIndex) -> SolveJob:
        """
        Starts the first run; nothing is written.
        """
    def start(self, /, out: str | PathLike[str], threads: SupportsIndex, fresh: bool) -> Job:
        """
        Starts all runs; results go below the folder `out`.
        """
    def table(self, /, folder: str | PathLike[str], run: str, point: SupportsIndex) -> dict:
        """
        The table of a run at a point, read from a finished folder.
        """
    @property
    def title(self, /) -> str:
        """
        The title.
        """
    def work(self, /, out: str | PathLike[str], share: SupportsIndex, shares: SupportsIndex, threads: SupportsIndex) -> ShareJob:
        """
        Starts one share of the experiment, of which all have the same plan: what `didact sweep work` computes.
        """

@final
class ShareJob:
    """
    One share of an experiment.
    """
    def wait(self, /) -> tuple[int, int]:
        """
        Waits, and returns how many pieces of the share failed, and how many were not done.
        """

@final
class SolveJob:
    """
    One run in memory.
    """
    def wait(self, /, report: Any | None = None) -> dict:
        """
        Waits, and returns the table. `report` is called with the fraction that is done.
        """

def command(arguments: SupportsGetItem[int, str]) -> int:
    """
    The program `didact` with these arguments, the first of which is its name; returns the exit code.
    """

def compute(quantity: str, given: Any, threads: SupportsIndex | None) -> dict:
    """
    The named entries of a quantity.
    """

def default_threads() -> int:
    """
    The number of threads unless one is given: the cores that this process may use.
    """

def fit(function: Any, reach: SupportsFloat | SupportsIndex, kinks: SupportsGetItem[int, SupportsFloat | SupportsIndex] | None = None) -> dict:
    """
    Samples a function on |x| ≤ `reach` and fits it. It is called here and now, with arrays, and never again.
    """

def lists(what: str) -> list[tuple[str, str]]:
    """
    Families, engines, activations, functions or observables: names with one line each.
    """

def mean_and_error(curves: Incomplete) -> tuple[Incomplete, Incomplete]:
    """
    Mean over the replicas that reached each time, and its standard error, as figures show them.
    """

def quantities() -> Any:
    """
    Every quantity: path, summary, inputs and outputs.
    """

def schema() -> Any:
    """
    The JSON schema of descriptions.
    """

def version() -> str:
    """
    The version of the package.
    """
