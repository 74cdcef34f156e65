"""`wanlat calibrate` draws what it measured, and says before it measures if it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    ("file", "words"), [("x.jpg", "must end in"), ("nowhere/x.png", "no directory")]
)
def test_a_chart_that_cannot_be_is_told_at_once(tmp_path: Path, file: str, words: str) -> None:
    done = calibrate(tmp_path, "--chart", file)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "results").exists()


def test_the_picture_is_where_it_was_asked_for_and_else_with_the_results(tmp_path: Path) -> None:
    done = calibrate(tmp_path, "--chart", "here.svg")
    assert "picture: here.svg" in done.stderr
    assert (tmp_path / "here.svg").read_text().lstrip().startswith("<?xml")
    calibrate(tmp_path)
    assert (tmp_path / "results" / "calibration-near.png").read_bytes()[:4] == b"\x89PNG"
