"""``wanlat calibrate``: one document, exit code 1 for a wrong network, and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import here
from tests.late_network import accepting_late_packets
from wanlat.commands import calibrate as command
from wanlat.topologies.errors import MachineError, UserError


@pytest.fixture(autouse=True)
def _networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, rtt in (("near", "4ms"), ("far", "6ms")):
        (tmp_path / f"{name}.yaml").write_text(
            f"name: {name}\nsites: [{{name: a, nodes: [n1]}}, {{name: b, nodes: [n2]}}]\n"
            f"links: {{default: {{rtt: {rtt}}}}}\n"
        )
    monkeypatch.chdir(tmp_path)


def calibrated(*more: str) -> tuple[int, Any]:
    done = here("calibrate", "near.yaml", "--samples", "30", "--json", *more)
    assert "verdict: " in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_it_prints_exactly_one_document_and_draws() -> None:
    # On however late a network: so this one has to pass, and the next test's to fail.
    with accepting_late_packets("calibrate"):
        code, document = calibrated()
    assert (code, document["topology"]) == (0, "near")
    assert {pair["verdict"] for pair in document["pairs"]} | {document["verdict"]} == {"pass"}
    assert min(pair["rtt_ms"]["min"] for pair in document["pairs"]) > 3.9
    assert Path("results", "calibration-near.png").read_bytes()[:4] == b"\x89PNG"


def test_a_network_that_is_not_the_one_asked_for_is_found() -> None:
    code, document = calibrated("--applied", "far.yaml", "--chart", "here.svg")
    assert (code, document["verdict"]) == (1, "fail")
    assert Path("here.svg").read_text().lstrip().startswith("<?xml")


def test_a_chart_that_cannot_be_written_in_the_end_is_an_error_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure  # here: it takes a third of a second

    monkeypatch.setattr("wanlat.analysis.charts.calibration.draw", lambda *_: Figure())
    (tmp_path / "x.svg").mkdir()
    with pytest.raises(MachineError, match=r"x\.svg cannot be written: Is a directory"):
        command._draw({"topology": "near"}, tmp_path / "x.svg", force=True)


def test_a_chart_replaces_no_file_that_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wanlat.analysis.charts.calibration.draw", lambda *_: Figure())
    mine = (Path("results", "calibration-near.png"), Path("named.png"))
    Path("results").mkdir()
    for each in mine:
        each.write_text("mine")
    command._draw({"topology": "near"}, None, force=False)
    with pytest.raises(UserError):
        command._draw({"topology": "near"}, mine[1], force=False)
    assert [each.read_text() for each in mine] == ["mine", "mine"]
    assert Path("results", "calibration-near-2.png").read_bytes()[:4] == b"\x89PNG"


def test_the_seed_is_the_one_that_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def no_lab(*_: Any, seed: int, **__: Any) -> None:
        seeds.append(seed)
        raise MachineError("no lab here")

    monkeypatch.setattr("wanlat.emulator.lab.Lab", no_lab)
    assert here("calibrate", "near.yaml", "--seed", "0").returncode == 3
    assert seeds == [0]
