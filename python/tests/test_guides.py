"""What the guides and the README show works as it is written."""

import re

import pytest
from conftest import ROOT, TWO_UNITS

matplotlib = pytest.importorskip("matplotlib")


def programs(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", ["docs/guides/python.md", "README.md"])
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
    errors = []
    for step in ("0.04", "0.02"):
        exec(loop.replace("dt, end = 1.0, 0.02, 80.0", f"dt, end = 1.0, {step}, 8.0"), names)
        exec(eight, names)
        import numpy as np

        losses = np.array(names["losses"])
        errors.append(np.max(np.abs(names["table"]["loss"][0][: len(losses)] / losses - 1)))
    # Euler's error at the published step, proportional to it.
    assert errors[1] < 0.02 and 1.8 < errors[0] / errors[1] < 2.2
