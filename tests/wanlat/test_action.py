"""action.yml: its steps run as they stand, and it fails where an endpoint gained a round trip."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
import yaml

from tests.command_line import write_program
from tests.wanlat.action_runner import ACTION, CHECKOUT, Job
from wanlat.emulator.binaries import binary

STUDY = """
name: in-ci
topology: three-datacenters
endpoints: [GetObject, PutObject]
round_trips: {rtts: [0ms, 20ms, 40ms], repeats: 2, settle: 1s}
samples: 4
warmup: 1
max_network_error: 100ms
"""
SLOWER = """#!/bin/bash
# The reference store after a change that asks its peers twice.
exec {program} "${{@/leaderless/rounds:2}}"
"""


def job_in(directory: Path) -> Job:
    """A job on a machine that has wanlat, whose store is the reference store."""
    (directory / "study.yaml").write_text(STUDY)
    write_program(directory / "slower", SLOWER.format(program=binary("quorum")))
    shim = write_program(directory / "bin" / "wanlat", f'exec {sys.executable} -m wanlat "$@"')
    path = f"{shim.parent}:{os.environ['PATH']}"
    return Job(directory, {**os.environ, "PATH": path})


@pytest.mark.minutes
def test_it_measures_compares_and_fails_where_a_round_trip_was_gained(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    of = {"study": "study.yaml", "systems": "quorum", "without": ["install"]}
    assert job.uses(**of, out="before") == 0, job.said
    assert job.skipped == ["Install wanlat", "Cache of stores"]
    assert "| Quorum 0.1.0 | PutObject |" in job.summary and "PASS" not in job.summary
    bmf = json.loads((tmp_path / "before" / "bmf.json").read_text())
    trips = bmf["quorum PutObject"]["round-trips"]
    assert trips["lower_value"] <= trips["value"] <= trips["upper_value"]
    assert trips["value"] == pytest.approx(1, abs=0.3)
    job.environment = {**job.environment, "WANLAT_QUORUM_BINARY": str(tmp_path / "slower")}
    code = job.uses(**of, out="after", baseline="before", compare_arguments="--round-trips 0.5")
    assert code == 1, job.said
    assert "**FAIL (round-trips, failures)" in job.summary
    suite = Xml.parse(tmp_path / "after" / "junit.xml").getroot()[0]
    assert suite.attrib == {
        **{"name": "wanlat compare", "tests": "2", "failures": "2", "skipped": "0"},
    }
    said = suite[0].find("failure")
    # Packets tell it, however busy the machine is; whether the slope does too hangs on that.
    assert said is not None and "critical path 1.00 → 2.00" in said.attrib["message"]
    again = job.uses(**of, out="again", baseline="after")
    assert again == 0, job.said


def test_an_input_that_is_no_word_is_no_program(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    touches = "x; touch broken; $(touch broken) `touch broken`"
    code = job.uses(
        study=touches, systems=touches, arguments=touches, install=touches, without=["install"]
    )
    assert code != 0
    assert not [*tmp_path.rglob("broken*")]


@pytest.mark.parametrize("path", sorted((CHECKOUT / "examples" / "ci").glob("*.yml")), ids=str)
def test_the_example_workflows_use_what_the_action_has(path: Path) -> None:
    (job,) = yaml.safe_load(path.read_text("utf-8"))["jobs"].values()
    ours = [step for step in job["steps"] if "/wanlat@" in step.get("uses", "")]
    assert ours
    for step in ours:
        assert set(step["with"]) <= set(ACTION["inputs"])
        required = {name for name, of in ACTION["inputs"].items() if of.get("required")}
        assert required <= set(step["with"])
