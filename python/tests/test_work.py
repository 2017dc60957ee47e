"""Threads, processes, signals, jobs, progress."""

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import TWO_UNITS

import didact


def solve_in_a_child(seed):
    """Uses more than one thread, so that a pool without threads would hang."""
    table = didact.solve(
        {"family": "committee", "students": 2, "teachers": 2, "activation": "erf(z/sqrt2)"},
        engine="reduced",
        learning_rate=1.0,
        start={"q": [[0.25, 0], [0, 0.25]], "r": [[0.1, 0], [0, 0.1]]},
        times=[0, 1, 2],
        dimension=100,
        replicas=8,
        seed=seed,
        threads=2,
    )
    return table["loss"].tobytes()


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_children_work_after_their_parent_did(method):
    here = [solve_in_a_child(seed) for seed in (1, 2)]
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(solve_in_a_child, (1, 2), timeout=120)) == here


def threads_of_a_worker(_):
    from didact import _threads

    return _threads.number(None), _threads.number(5)


def test_threads_are_chosen_by_argument_environment_and_place(monkeypatch):
    from didact import _core, _threads

    assert _threads.number(None) == _core.default_threads() and _threads.number(3) == 3
    monkeypatch.setenv("DIDACT_THREADS", "2")
    assert _threads.number(None) == 2 and _threads.number(3) == 3
    monkeypatch.setenv("DIDACT_THREADS", "many")
    with pytest.raises(ValueError, match="DIDACT_THREADS is `many`"):
        _threads.number(None)
    monkeypatch.delenv("DIDACT_THREADS")
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        assert list(pool.map(threads_of_a_worker, [0])) == [(1, 5)]
    joblib = pytest.importorskip("joblib")
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(threads_of_a_worker)(i) for i in range(2)) == [(1, 5)] * 2


@pytest.mark.parametrize("module", ["pickle", "cloudpickle", "joblib"])
def test_experiments_tables_results_and_errors_are_pickled(module, tmp_path, two_units):
    tool = pytest.importorskip(module)

    def back(thing):
        if module != "joblib":
            return pickle.loads(tool.dumps(thing))
        tool.dump(thing, tmp_path / "kept")
        return tool.load(tmp_path / "kept")

    changed = two_units.replace({"training.learning-rate": 0.5})
    assert back(changed) == changed != two_units
    result = changed.run(out=tmp_path)
    table, again = result["sgd"], back(result)
    assert back(table) == table and again["sgd"] == table and again.folder == result.folder
    with pytest.raises(didact.DescriptionError) as error:
        didact.Experiment({"title": 1})
    copy = back(error.value)
    assert (str(copy), copy.message, copy.hint) == (str(error.value), error.value.message, error.value.hint)


def test_two_threads_run_two_experiments(tmp_path, two_units):
    alone = [two_units.run(out=tmp_path / "alone", seed=seed)["sgd"] for seed in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: two_units.run(out=tmp_path / "together", seed=seed)["sgd"], range(4)))
    assert together == alone


LONG = TWO_UNITS.replace("to = 20,", "to = 20000,").replace("replicas = 4", "replicas = 2").replace("time = 20", "time = 0")

INTERRUPTED = """
import didact, os, signal, sys, time
e = didact.Experiment.from_toml(sys.stdin.read())
sent = []
def interrupt(state):
    if state["fraction"] >= 0.5 and not sent:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
try:
    e.run(out=sys.argv[1], threads=2, progress=interrupt)
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - sent[0])
"""


def test_ctrl_c_ends_a_run_and_keeps_finished_tables(tmp_path):
    experiment = didact.Experiment.from_toml(LONG)
    assert [run for run, _ in experiment.missing(tmp_path)] == ["theory", "sgd"]
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)], input=LONG, capture_output=True, text=True, timeout=240
    )
    assert run.stdout.startswith("interrupted"), run.stderr
    # The next run of the same experiment finds the table that is there.
    assert experiment.missing(tmp_path) == [("sgd", {})]
    job = experiment.start(out=tmp_path, threads=2)
    while job.progress < 0.5:
        time.sleep(0.01)
    job.cancel()
    with pytest.raises(didact.Interrupted):
        job.wait()


def test_jobs_are_watched_awaited_and_cancelled(tmp_path, two_units):
    job = two_units.start(out=tmp_path)
    result = job.wait()
    assert job.done and job.progress == 1.0 and job.wait() is result and len(result) == 2
    long = didact.Experiment.from_toml(LONG).start(out=tmp_path)
    with pytest.raises(TimeoutError):
        long.wait(timeout=0.05)
    assert not long.done and 0.0 <= long.progress < 1.0
    long.cancel()
    with pytest.raises(didact.Interrupted, match="cancelled"):
        long.wait(timeout=120)
    with pytest.raises(didact.Interrupted, match="cancelled"):
        long.wait()
    with pytest.raises(ValueError, match="not negative"):
        two_units.start(out=tmp_path / "b").wait(timeout=-1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_job_of_the_parent_says_so_in_a_child(tmp_path):
    job = didact.Experiment.from_toml(LONG).start(out=tmp_path)
    child = os.fork()
    if child == 0:
        try:
            job.wait(timeout=1)
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    job.cancel()


def test_many_experiments_as_they_finish(tmp_path, two_units):
    grid = {rate: two_units.replace({"training.learning-rate": rate}) for rate in (0.5, 1.0, 1.5)}
    alone = {rate: experiment.run(out=tmp_path / "alone")["sgd"] for rate, experiment in grid.items()}
    here = dict(didact.run_many(grid, out=tmp_path / "here"))
    assert {rate: result["sgd"] for rate, result in here.items()} == alone
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        there = dict(didact.run_many(list(grid.values()), executor=pool, out=tmp_path / "there"))
    assert {i: result["sgd"] for i, result in there.items()} == dict(enumerate(alone.values()))
    with pytest.raises(TypeError, match="expected an Experiment"):
        next(didact.run_many([{}]))


def folder_bytes(result):
    """All files of a folder but the provenance, which says how long it took."""
    files = (path for path in result.folder.rglob("*") if path.is_file() and path.name != "provenance.json")
    return {path.relative_to(result.folder): path.read_bytes() for path in files}


def test_shares_of_one_experiment_give_the_bytes_of_a_run(tmp_path, two_units):
    swept = two_units.replace({"sweep": {"training.learning-rate": [0.5, 1.0, 1.5]}})
    alone = swept.run(out=tmp_path / "alone")
    here = didact.run_sweep(swept, shares=3, out=tmp_path / "here")
    assert folder_bytes(here) == folder_bytes(alone)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        there = didact.run_sweep(swept, pool, shares=4, out=tmp_path / "there")
    assert folder_bytes(there) == folder_bytes(alone)
    assert len(list((tmp_path / "there").glob("*.sweep/shards-4/task-*.log"))) == 4
    with pytest.raises(ValueError, match="at least 1"):
        didact.run_sweep(swept, shares=0)
    with pytest.raises(TypeError, match="expected an Experiment"):
        didact.run_sweep({})


def test_dask_is_an_executor(tmp_path, two_units):
    distributed = pytest.importorskip("distributed")
    swept = two_units.replace({"sweep": {"training.learning-rate": [0.5, 1.0]}})
    with distributed.Client(n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        ((name, result),) = didact.run_many([two_units], executor=client, out=tmp_path)
        shared = didact.run_sweep(swept, client, shares=3, out=tmp_path / "shares")
    assert name == 0 and result["sgd"] == two_units.run(out=tmp_path / "own")["sgd"]
    assert folder_bytes(shared) == folder_bytes(swept.run(out=tmp_path / "alone"))


def test_submitit_is_an_executor_though_its_jobs_call_nobody_back(tmp_path, two_units):
    submitit = pytest.importorskip("submitit")
    executor = submitit.LocalExecutor(folder=tmp_path / "jobs")
    swept = two_units.replace({"sweep": {"training.learning-rate": [0.5, 1.0]}})
    shared = didact.run_sweep(swept, executor, shares=2, out=tmp_path / "shares")
    assert folder_bytes(shared) == folder_bytes(swept.run(out=tmp_path / "alone"))
    ((name, result),) = didact.run_many([two_units], executor=executor, out=tmp_path)
    assert name == 0 and result["sgd"] == two_units.run(out=tmp_path / "own")["sgd"]


def test_progress_is_told_to_a_function(tmp_path, two_units):
    heard = []
    two_units.run(out=tmp_path, progress=heard.append)
    assert heard[-1]["fraction"] == 1.0 and heard[-1]["title"] == "Two erf units"
    assert set(heard[-1]) == {"title", "fraction", "elapsed", "remaining"}
    assert all(threading.current_thread() is threading.main_thread() for _ in heard)

    def broken(_):
        raise ZeroDivisionError("mine")

    with pytest.warns(RuntimeWarning, match="mine"):
        two_units.run(out=tmp_path / "b", progress=broken)
    with pytest.raises(ValueError, match="progress is 'loud'"):
        two_units.run(out=tmp_path / "c", progress="loud")


def test_progress_is_a_bar_in_a_terminal_and_silent_elsewhere(tmp_path, two_units, capsys):
    two_units.run(out=tmp_path / "a")
    assert capsys.readouterr() == ("", "")
    two_units.run(out=tmp_path / "b", progress="bar")
    err = capsys.readouterr().err
    assert "Two erf units [==============================] 100%" in err and err.endswith("\r")


def test_progress_is_html_in_a_notebook(tmp_path, two_units, monkeypatch):
    display = pytest.importorskip("IPython.display")
    shown = []

    class Handle:
        def update(self, thing):
            shown.append(thing.data)

    monkeypatch.setattr(display, "display", lambda thing, display_id: (shown.append(thing.data), Handle())[1])
    two_units.replace({"title": "<b>"}).run(out=tmp_path, progress="html")
    assert "&lt;b&gt;" in shown[-1] and "width:100.0%" in shown[-1]


def test_a_handler_of_the_user_hears_the_signal(tmp_path):
    """An alarm interrupts the wait, and its exception comes out."""

    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Alarm):
            didact.Experiment.from_toml(LONG).run(out=tmp_path)
    finally:
        signal.signal(signal.SIGALRM, before)
