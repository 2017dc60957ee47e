"""What the guides and the README show works as it is written."""

import re

import pytest
from conftest import ROOT, TWO_UNITS

matplotlib = pytest.importorskip("matplotlib")


def programs(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", ["docs/guides/python.md", "docs/guides/cluster.md", "README.md"])
def test_every_program_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two-units.toml").write_text(TWO_UNITS)
    names: dict = {}
    found = programs(page)
    assert found
    for program in found:
        exec(compile(program, page, "exec"), names)


def test_the_loop_and_the_eight_lines_agree():
    loop, eight = programs("docs/guides/from-your-script.md")
    names: dict = {}
    # The published step would take seconds; a step ten times as long makes the same error ten times as large.
    exec(loop.replace("dt, end = 1.0, 0.02, 80.0", "dt, end = 1.0, 0.2, 80.0"), names)
    exec(eight, names)
    import numpy as np

    off = np.max(np.abs(names["table"]["loss"][0] / np.array(names["losses"]) - 1))
    assert off < 0.5
    early = np.abs(names["table"]["loss"][0] / np.array(names["losses"]) - 1)[:5]
    assert early.max() < 0.02
