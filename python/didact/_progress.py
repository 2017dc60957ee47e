"""Progress of a run: a bar in a terminal, HTML in a notebook, a function of yours, or silence."""

from __future__ import annotations

import html
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# At most so many reports a second; the core asks about as often.
_RATE = 10.0


@contextmanager
def reporter(progress: Any, title: str) -> Iterator[Callable[[float], None] | None]:
    """The function that hears the fraction that is done, for the time of a run.

    `progress` is `"auto"`, `"bar"`, `"html"`, `True` (as `"auto"`), `False` or `None` (silent), or a function that gets a
    dict with `title`, `fraction`, `elapsed` and `remaining` (seconds, `None` while it is not known).
    """
    shown = _display(progress)
    if shown is None:
        yield None
        return
    report = _Report(shown, title)
    try:
        yield report
    finally:
        report.close()


def _display(progress: Any) -> Any:
    if progress in (None, False):
        return None
    if callable(progress):
        return _Callback(progress)
    if progress in ("auto", True):
        if _in_a_notebook():
            return _Html()
        return _Bar() if sys.stderr is not None and sys.stderr.isatty() else None
    if progress == "bar":
        return _Bar()
    if progress == "html":
        return _Html()
    raise ValueError(f"progress is {progress!r}; use 'auto', 'bar', 'html', a function, or False")


def _in_a_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class _Report:
    """Passes reports on, at most ten a second."""

    def __init__(self, display: Any, title: str) -> None:
        self.display, self.title = display, title
        self.begun = time.monotonic()
        self.last = 0.0

    def __call__(self, fraction: float) -> None:
        now = time.monotonic()
        if fraction < 1.0 and now - self.last < 1.0 / _RATE:
            return
        self.last = now
        elapsed = now - self.begun
        remaining = elapsed * (1.0 - fraction) / fraction if fraction > 0.0 else None
        state = {"title": self.title, "fraction": fraction, "elapsed": elapsed, "remaining": remaining}
        self.display.show(state)

    def close(self) -> None:
        self.display.close()


def _times(state: dict[str, Any]) -> str:
    remaining = state["remaining"]
    rest = "" if remaining is None or state["fraction"] >= 1.0 else f", about {remaining:.0f} s left"
    return f"{state['elapsed']:.1f} s{rest}"


class _Callback:
    """A function of the user. Its first exception is shown as a warning, and it is not called again."""

    def __init__(self, function: Callable[[dict[str, Any]], Any]) -> None:
        self.function: Callable[[dict[str, Any]], Any] | None = function

    def show(self, state: dict[str, Any]) -> None:
        if self.function is None:
            return
        try:
            self.function(state)
        except Exception as error:
            self.function = None
            warnings.warn(f"the progress function failed and is not called again: {error!r}", RuntimeWarning, stacklevel=2)

    def close(self) -> None:
        pass


class _Bar:
    """One line on stderr that is written again and again, and cleared at the end."""

    WIDTH = 30

    def __init__(self) -> None:
        self.shown = 0

    def show(self, state: dict[str, Any]) -> None:
        filled = round(self.WIDTH * state["fraction"])
        bar = "=" * filled + " " * (self.WIDTH - filled)
        title = "".join(c if c.isprintable() else "?" for c in state["title"])[:40]
        line = f"{title} [{bar}] {100 * state['fraction']:3.0f}% {_times(state)}"
        sys.stderr.write("\r" + line.ljust(self.shown))
        sys.stderr.flush()
        self.shown = len(line)

    def close(self) -> None:
        if self.shown:
            sys.stderr.write("\r" + " " * self.shown + "\r")
            sys.stderr.flush()


class _Html:
    """A bar that updates itself in a notebook, without widgets."""

    def __init__(self) -> None:
        self.handle: Any = None

    def show(self, state: dict[str, Any]) -> None:
        from IPython.display import HTML, display

        percent = 100 * state["fraction"]
        text = HTML(
            '<div style="font:12px sans-serif">'
            f"{html.escape(state['title'])} "
            '<span style="display:inline-block;width:220px;height:8px;background:#8884;border-radius:4px">'
            f'<span style="display:block;width:{percent:.1f}%;height:8px;background:#0072b2;border-radius:4px"></span>'
            f"</span> {percent:.0f} % {_times(state)}</div>"
        )
        if self.handle is None:
            self.handle = display(text, display_id=True)
        elif self.handle is not None:
            self.handle.update(text)

    def close(self) -> None:
        pass
