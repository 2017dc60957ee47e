"""The same numbers and the same words as the command line."""

import json
import re

import numpy as np
import pytest
from conftest import ROOT, TWO_UNITS

import didact

BAD = sorted((ROOT / "crates/cli/tests/bad").glob("*.toml"))
QUANTITIES = ROOT / "crates/cli/tests/bad/quantities"
IMPOSSIBLE = [
    (command, message)
    for path in sorted(QUANTITIES.glob("*.txt"))
    for command, message in re.findall(r"^\$ didact compute (.*)\n((?:.+\n?)+)", path.read_text(), re.M)
]


def test_tables_equal_those_of_the_command_line_bit_for_bit(tmp_path, command):
    file = tmp_path / "two-units.toml"
    file.write_text(TWO_UNITS)
    done = command("run", file, "--out", tmp_path / "by-command", "--json")
    assert done.returncode == 0, done.stderr
    kept = json.loads(done.stdout)["folder"]
    result = didact.Experiment.load(file).run(out=tmp_path / "by-python", threads=1)
    assert result.folder.name == kept.rsplit("/", 1)[-1]
    for run in ("theory", "sgd"):
        table = result[run]
        arrays = np.load(f"{kept}/{run}.npz")
        assert set(arrays) == {"times", *table.columns, *(f"event:{name}" for name in table.events)}
        for name in arrays:
            own = table.time if name == "times" else table.events[name[6:]] if name.startswith("event:") else table[name]
            assert own.dtype == arrays[name].dtype and own.shape == arrays[name].shape
            assert own.tobytes() == arrays[name].tobytes(), f"{run} {name}"


def test_threads_change_no_bit(tmp_path, two_units):
    one, three = (two_units.run(out=tmp_path / str(n), threads=n) for n in (1, 3))
    assert all(one[run] == three[run] for run in one)


@pytest.mark.parametrize("path", BAD, ids=[path.stem for path in BAD])
def test_bad_descriptions_raise_the_message_of_the_command_line(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with pytest.raises(didact.DescriptionError) as error:
        didact.Experiment.load(path.name)
    assert f"error: {error.value}\n" == path.with_suffix(".txt").read_text()
    assert error.value.message and str(error.value).startswith(error.value.message.split("\n")[0])


@pytest.mark.parametrize(("command", "message"), IMPOSSIBLE, ids=[command[:60] for command, _ in IMPOSSIBLE])
def test_impossible_questions_raise_the_message_of_the_command_line(command, message, monkeypatch):
    monkeypatch.chdir(QUANTITIES)
    quantity, *words = command.split()
    inputs = {}
    for word in words:
        key, value = word.split("=", 1)
        try:
            inputs[key] = json.loads(value, parse_constant=str)
        except json.JSONDecodeError:
            inputs[key] = value
    with pytest.raises(didact.DescriptionError) as error:
        didact.compute(quantity, **inputs)
    assert f"error: {error.value}" == message.rstrip("\n")


def test_there_are_bad_inputs():
    assert len(BAD) > 100 and len(IMPOSSIBLE) > 5


def test_the_package_installs_the_same_program(command):
    assert command("--version").stdout == f"didact {didact.__version__}\n"
    assert command("list", "engines", "--json").returncode == 0
    wrong = command("run", "nowhere.toml")
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: cannot read nowhere.toml")
    answer = json.loads(command("compute", "committee/plateau", "M=2").stdout)
    own = didact.compute("committee/plateau", M=2)
    assert list(answer) == list(own) and all(np.all(np.asarray(answer[key]) == own[key]) for key in own)
