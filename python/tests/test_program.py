"""The program that the README and the guide show, and what results are made of."""

import subprocess
import sys

import numpy as np
import pytest

import didact

COMMITTEE = {"family": "committee", "students": 2, "teachers": 2, "activation": "erf(z/sqrt2)"}
START = {"q": 0.25 * np.eye(2), "r": 0.1 * np.eye(2)}


def test_a_run_has_tables_claims_measures_and_figures(tmp_path, two_units):
    slower = two_units.replace({"training.learning-rate": 0.5})
    assert slower.describe()["training"]["learning-rate"] == 0.5
    assert two_units.describe()["training"]["learning-rate"] == 1.0
    r = two_units.run(out=tmp_path, progress=False)
    assert r.folder.parent == tmp_path and (r.folder / "report.html").exists() and not r.reused
    assert two_units.run(out=tmp_path).reused
    assert [claim.holds for claim in r.claims] == [True] and r.failures == []
    assert r.measures["end"].value == r["theory"]["loss"][0, -1]
    theory, sgd = r["theory"], r["sgd"]
    assert theory["loss"].shape == (1, 11) and sgd["loss"].shape == (4, 11)
    assert theory.time.tolist() == np.linspace(0, 20, 11).tolist()
    assert sgd.mean("loss") == pytest.approx(sgd["loss"].mean(axis=0), rel=1e-14)
    assert sgd.error("loss") == pytest.approx(sgd["loss"].std(axis=0, ddof=1) / 2, rel=1e-10)
    assert np.isfinite(theory.events["low"]).all() and np.isnan(sgd.events["never"]).all()
    assert [outcome["kind"] for outcome in sgd.outcomes] == ["completed"] * 4
    assert theory.stats[0]["accepted-steps"] > 0
    figure = r.figures["loss"]
    assert figure._repr_svg_().startswith("<svg") and figure.save(tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(ValueError, match="svg, .pdf or .png"):
        figure.save(tmp_path / "x.gif")


def test_figures_become_matplotlib(tmp_path, two_units):
    pytest.importorskip("matplotlib")
    r = two_units.run(out=tmp_path)
    axes = r.figures["loss"].to_matplotlib().axes[0]
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "loss"
    drawn = axes.lines[0].get_ydata()
    assert np.asarray(drawn) == pytest.approx(r["theory"].mean("loss"), rel=1e-12)


def test_frames(tmp_path, two_units):
    table = two_units.run(out=tmp_path)["sgd"]
    pandas, polars, xarray = (pytest.importorskip(name) for name in ("pandas", "polars", "xarray"))
    assert isinstance(table.to_pandas(), pandas.DataFrame) and table.to_pandas().shape == (44, 2)
    assert table.to_pandas()["loss"].loc[3].to_numpy().tobytes() == table["loss"][3].tobytes()
    assert isinstance(table.to_polars(), polars.DataFrame) and table.to_polars().shape == (44, 4)
    dataset = table.to_xarray()
    assert isinstance(dataset, xarray.Dataset) and dict(dataset.sizes) == {"replica": 4, "time": 11}
    assert dataset["event:low"].shape == (4,)


def test_solve_is_the_run_without_its_folder(tmp_path, two_units, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = didact.solve(
        COMMITTEE,
        engine="reduced",
        learning_rate=1.0,
        start=START,
        times=np.linspace(0, 20, 11),
        observe=["loss", "R[0,0]"],
        dimension=1000,
        replicas=4,
    )
    assert list(tmp_path.iterdir()) == []
    kept = two_units.run(out=tmp_path)["sgd"]
    assert all(table[name].tobytes() == kept[name].tobytes() for name in ("loss", "R[0,0]"))


def test_solve_takes_sections_events_and_options():
    table = didact.solve(
        COMMITTEE,
        engine={"engine": "ode", "tolerance": 1e-6},
        training={"learning-rate": 0.5},
        start=START,
        times={"from": 1, "to": 10, "points": 4, "spacing": "log"},
        record={"clock": "alpha"},
        events=[{"name": "low", "observable": "loss", "level": 0.01, "crossing": "falls", "stops": True}],
    )
    assert table.clock == "alpha" and table.engine == "ode" and list(table) == ["loss"]
    assert table.outcomes[0]["kind"] in ("completed", "stopped")


def test_divergence_is_an_outcome():
    table = didact.solve(
        COMMITTEE | {"activation": "quadratic"},
        engine="reduced",
        learning_rate=50.0,
        start=START,
        times=[0, 1, 50],
        dimension=100,
        replicas=3,
    )
    assert {outcome["kind"] for outcome in table.outcomes} == {"diverged"} and np.isnan(table["loss"][:, -1]).all()


def test_sweeps_have_points(tmp_path, two_units):
    sweep = two_units.replace(
        {"sweep": {"training.learning-rate": [0.5, 1.0], "data.dimension": [100, 1000]}, "claim": [], "figure": [], "measure": []}
    )
    r = sweep.run(out=tmp_path)
    assert len(r.points) == 4
    t = r.table("sgd", point={"training.learning-rate": 0.5, "data.dimension": 100})
    assert t != r.table("sgd", point={"training.learning-rate": 0.5, "data.dimension": np.int64(1000)})
    with pytest.raises(KeyError, match="has 2 points there"):
        r.table("sgd", point={"training.learning-rate": 0.5})
    with pytest.raises(KeyError, match="is not swept"):
        r.table("sgd", point={"training.learning-rat": 0.5})
    with pytest.raises(KeyError, match="not run at"):
        r.table("sgd", point={"data.dimension": 7})
    with pytest.raises(KeyError, match="no run `other`; there are `theory`, `sgd`"):
        r["other"]
    with pytest.raises(KeyError, match="no column `x`; there are `loss`"):
        t["x"]
    xarray = pytest.importorskip("xarray")
    means = r.to_xarray("sgd", "loss")
    assert isinstance(means, xarray.DataArray) and means.dims == ("data.dimension", "training.learning-rate", "time")
    assert means.sel({"data.dimension": 100, "training.learning-rate": 0.5}).values.tobytes() == t.mean("loss").tobytes()


def test_scans_are_arrays(tmp_path, root):
    r = didact.Experiment.load(root / "examples/scan.toml").run(out=tmp_path)
    for name in r._scans:
        scan = r.scan(name)
        assert scan.inputs and scan.entries and len({len(v) for v in (scan.inputs | scan.entries).values()}) == 1


def test_folders_are_opened_again(tmp_path, two_units):
    r = two_units.run(out=tmp_path, seed=3)
    again = didact.open_result(r.folder)
    assert all(again[run] == r[run] for run in r) and again.claims == r.claims
    with pytest.raises(FileNotFoundError):
        didact.open_result(tmp_path)


def test_lists_and_quantities():
    answer = didact.compute("committee/plateau", M=2)
    assert all(isinstance(value, float | np.ndarray) for value in answer.values())
    path = "committee/plateau"
    assert didact.quantities()[path]["outputs"] == list(answer)
    assert {"committee", "multi-index"} <= set(didact.families()) and {"ode", "dmft"} <= set(didact.engines())
    assert "loss" in didact.observables() and didact.schema()["properties"]["model"] and didact.functions()
    assert "relu" in didact.activations()


def test_import_brings_numpy_alone():
    code = "import sys, didact; print(sorted({'pandas','polars','xarray','matplotlib','IPython'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_what_there_is_has_a_description(two_units):
    missing = [name for name in didact.__all__ if not getattr(didact, name).__doc__]
    assert missing == []
    assert repr(two_units) == "Experiment `Two erf units`: runs theory (ode), sgd (reduced)"
    assert two_units.check()[0]["engine"] == "ode" and two_units.references()[0][0]
