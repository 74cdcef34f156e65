"""`wanlat calibrate` draws what it measured, and says before it measures if it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from wanlat.commands import calibrate as command
from wanlat.topologies.errors import MachineError

CHECKOUT = Path(__file__).parents[2]
NEAR = """
name: near
sites: [{name: a, nodes: [n1]}, {name: b, nodes: [n2]}]
links: {default: {rtt: 4ms, jitter: 1ms}}
"""


def calibrate(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (directory / "near.yaml").write_text(NEAR)
    return subprocess.run(
        [sys.executable, "-m", "wanlat.cli", "calibrate", "near.yaml", "--samples", "20", *options],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
    )


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("x.jpg", "must end in"),
        ("nowhere/x.png", "no directory"),
        ("taken.svg", "is a directory"),
    ],
)
def test_a_chart_that_cannot_be_is_told_at_once(tmp_path: Path, file: str, words: str) -> None:
    (tmp_path / "taken.svg").mkdir()
    done = calibrate(tmp_path, "--chart", file)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.minutes
def test_the_picture_is_where_it_was_asked_for_and_else_with_the_results(tmp_path: Path) -> None:
    done = calibrate(tmp_path, "--chart", "here.svg")
    assert "chart: here.svg" in done.stderr
    assert (tmp_path / "here.svg").read_text().lstrip().startswith("<?xml")
    calibrate(tmp_path)
    assert (tmp_path / "results" / "calibration-near.png").read_bytes()[:4] == b"\x89PNG"


def test_a_chart_that_cannot_be_written_in_the_end_is_an_error_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wanlat.analysis.charts.calibration_picture.draw", lambda _: Figure())
    (tmp_path / ".x.svg.partial").mkdir()  # where it is written first
    with pytest.raises(MachineError, match=r"x\.svg cannot be written: Is a directory"):
        command._draw({"topology": "near"}, tmp_path / "x.svg")


@pytest.mark.parametrize("given", [0, 1, 2**40])
def test_the_seed_is_the_one_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: int
) -> None:
    seeds: list[int] = []

    def no_lab(*_: Any, seed: int, **__: Any) -> None:
        seeds.append(seed)
        raise MachineError("no lab here")

    monkeypatch.setattr("wanlat.emulator.lab.Lab", no_lab)
    (tmp_path / "near.yaml").write_text(NEAR)
    with pytest.raises(MachineError, match="no lab here"):
        command.calibrate(str(tmp_path / "near.yaml"), seed=given)
    assert seeds == [given]
