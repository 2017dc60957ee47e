"""A figure of a finished experiment: it shows itself in a notebook, saves itself, or becomes a figure of matplotlib."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import matplotlib.figure

# The colours of the toolkit's own drawings, in their order.
_PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]
_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "x", "plus": "+"}
_STROKES = {"solid": "-", "dashed": "--", "dotted": ":", "dash-dot": "-."}


class Figure:
    """A figure, drawn when the experiment was run. In a notebook it shows itself.

    `data()` is what it was drawn from: panels, axes and layers with their numbers, as plain data.
    """

    def __init__(self, folder: Path, name: str, data: Callable[[], dict[str, Any]]) -> None:
        self._folder, self.name, self._data = folder, name, data

    @property
    def svg(self) -> str:
        """The drawing as SVG."""
        return (self._folder / f"{self.name}.svg").read_text(encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Writes the drawing; the ending chooses among `.svg`, `.pdf` and `.png`."""
        path = Path(path)
        if path.suffix not in (".svg", ".pdf", ".png"):
            raise ValueError(f"a figure is saved as .svg, .pdf or .png, not as `{path.suffix}`; for others use to_matplotlib()")
        shutil.copyfile(self._folder / f"{self.name}{path.suffix}", path)
        return path

    def data(self) -> dict[str, Any]:
        """Panels, axes and layers with their numbers."""
        return self._data()

    def to_matplotlib(self) -> matplotlib.figure.Figure:
        """The same numbers as a figure of matplotlib, to be changed at will. Insets and colour bars are left out."""
        from matplotlib.figure import Figure as Canvas

        data = self.data()
        panels = data["panels"]
        columns = data.get("columns") or (1 if len(panels) == 1 else 2 if len(panels) <= 4 else 3)
        rows = -(-len(panels) // columns)
        canvas = Canvas(figsize=(4.2 * columns, 3.2 * rows), layout="constrained")
        colours: dict[str, str] = {}
        for index, panel in enumerate(panels):
            axes = canvas.add_subplot(rows, columns, index + 1)
            for layer in panel["layers"]:
                _draw(axes, layer, colours)
            for letter in "xy":
                axis = panel.get(letter) or {}
                getattr(axes, f"set_{letter}label")(axis.get("label") or "")
                if axis.get("scale") == "log":
                    getattr(axes, f"set_{letter}scale")("log")
                if axis.get("range"):
                    getattr(axes, f"set_{letter}lim")(axis["range"])
            axes.set_title(panel.get("title") or "")
            if axes.get_legend_handles_labels()[0]:
                axes.legend(frameon=False)
        if data.get("title"):
            canvas.suptitle(data["title"])
        return canvas

    def __repr__(self) -> str:
        return f"Figure `{self.name}` in {self._folder}"


def _numbers(values: Any) -> list[float]:
    return [float("nan") if value is None else value for value in values]


def _draw(axes: Any, layer: dict[str, Any], colours: dict[str, str]) -> None:
    kind, label = layer["kind"], layer.get("legend")
    series = layer.get("group") or label
    if series is not None and series not in colours:
        colours[series] = _PALETTE[len(colours) % len(_PALETTE)]
    given = layer.get("colour")
    colour = given if isinstance(given, str) and given.startswith("#") else colours.get(series or "", "#444444")
    if kind == "line":
        axes.plot(
            _numbers(layer["x"]),
            _numbers(layer["y"]),
            _STROKES.get(layer.get("stroke") or "solid", "-"),
            color=colour,
            label=label,
            lw=layer.get("width") or 1.2,
        )
    elif kind == "markers":
        bars = {"xerr": _bars(layer.get("x-error")), "yerr": _bars(layer.get("y-error"))}
        marker = _MARKERS.get(layer.get("marker") or "circle", "o")
        axes.errorbar(
            _numbers(layer["x"]),
            _numbers(layer["y"]),
            **bars,
            ls="none",
            marker=marker,
            mfc="none",
            color=colour,
            label=label,
            ms=4,
            capsize=2,
        )
    elif kind == "band":
        axes.fill_between(
            _numbers(layer["x"]), _numbers(layer["lower"]), _numbers(layer["upper"]), color=colour, alpha=0.25, label=label
        )
    elif kind == "density":
        axes.fill_between(_numbers(layer["x"]), _numbers(layer["y"]), color=colour, alpha=0.4, label=label)
    elif kind == "histogram":
        axes.stairs(_numbers(layer["heights"]), _numbers(layer["edges"]), color=colour, label=label, fill=True, alpha=0.5)
    elif kind == "heat-map":
        axes.pcolormesh(_numbers(layer["x"]), _numbers(layer["y"]), [_numbers(row) for row in layer["values"]])
    elif kind == "guide":
        for key, line in (("x", axes.axvline), ("y", axes.axhline)):
            if layer.get(key) is not None:
                line(layer[key], color=colour, lw=0.8, ls="--", label=label)


def _bars(bars: Any) -> Any:
    """Lengths of error bars as matplotlib takes them: one list, or one below and one above."""
    if bars is None:
        return None
    if isinstance(bars, dict):
        return [_numbers(bars.get("below") or bars["lower"]), _numbers(bars.get("above") or bars["upper"])]
    return _numbers(bars)
