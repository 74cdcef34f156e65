"""Ctrl-C at any moment: the bundle says what happened, of a study, a matrix and a drill alike."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import ran
from tests.experiments.commands import study
from tests.experiments.drill.drills import KILLED, SHORT, drill

MOMENTS = 10
STUDY = "resources: false\nendpoints: [PutObject, GetObject]\nsamples: 60\nwarmup: 1\n"
PHASES = "before: 1s, during: 2500ms, after: 2s"
SHORTER = SHORT.replace(PHASES, "before: 1s, during: 1500ms, after: 1s")

PROGRAM = """
import json, os, random, signal, sys, threading, time
from pathlib import Path
from wanlat.experiments import session

session.prove = lambda *_, **__: None  # nobody looks at the times
silent = lambda *_: None
kind, file, out = sys.argv[1], sys.argv[2], Path(sys.argv[3])
moments, seed = map(int, sys.argv[4:])


def made(directory):
    if kind == "drill":
        from wanlat.experiments.drill.prepare import load, prepare
        from wanlat.experiments.drill.runner import run
        return run, (prepare(load(file), system="quorum", directory=directory), silent)
    from wanlat.experiments.config.study import load
    if kind == "study":
        from wanlat.experiments.prepare import prepare
        from wanlat.experiments.run import run
        return run, (prepare(load(file), directory=directory), silent)
    from wanlat.experiments.matrix import run_matrix
    from wanlat.experiments.matrix_points import StudyPoints, prepare_points
    return run_matrix, (prepare_points(StudyPoints(load(file)), directory=directory), silent)


def interrupted(directory, after_s):
    run, arguments = made(directory)
    timer = threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()  # which waits for the thread: a signal after no time comes here
        return run(*arguments).status
    except KeyboardInterrupt:  # before there was a bundle that could say so
        return "raised" if (directory / "manifest.json").exists() else "nothing begun"
    finally:
        timer.cancel()
        try:
            timer.join()
        except KeyboardInterrupt:
            pass


signal.signal(signal.SIGINT, signal.default_int_handler)
began = time.monotonic()
assert interrupted(out / "whole", 600) == "complete"
took_s = time.monotonic() - began
chance = random.Random(seed)
print(json.dumps([interrupted(out / str(n), chance.uniform(0, took_s)) for n in range(moments)]))
"""


@pytest.mark.minutes
@pytest.mark.parametrize("kind", ["study", "matrix", "drill"])
def test_ctrl_c_at_random_moments_leaves_a_bundle_that_says_so(kind: str, tmp_path: Path) -> None:
    if kind == "drill":
        file = drill(tmp_path, KILLED, SHORTER)
    else:
        swept = "matrix: {object_size: [1KiB, 2KiB]}\n" if kind == "matrix" else ""
        file = study(tmp_path, STUDY + swept, rtt="5ms")
    seed = secrets.randbits(32)
    done = ran(sys.executable, "-c", PROGRAM, kind, file, tmp_path / "out", MOMENTS, seed)
    assert done.returncode == 0, (seed, done.stderr)
    statuses = json.loads(done.stdout)
    assert "interrupted" in statuses, seed
    for number, status in enumerate(statuses):
        if status == "nothing begun":
            continue
        manifest: Any = json.loads((tmp_path / "out" / str(number) / "manifest.json").read_text())
        assert manifest["status"] == status, (seed, number)
        assert status in ("interrupted", "complete"), (seed, number)
        assert (manifest["reason"] == "interrupted by the user") == (status == "interrupted")
        assert manifest["ended"] is not None
        if status == "interrupted" and kind == "matrix":
            points = json.loads((tmp_path / "out" / str(number) / "points.json").read_text())
            assert "running" not in {each["status"] for each in points["points"]}
