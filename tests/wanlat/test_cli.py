"""The command line: exit codes, one JSON document, and errors a person can act on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import late_network
from tests.command_line import here


def wanlat(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wanlat.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["topology", "show", "fife-sites"], "five-sites"),
        (["calibrate", "nowhere"], "no topology named"),
        (["calibrate", "five-sites", "--backend", "magic"], "netem"),
        (["calibrate", "five-sites", "--jitter", "20"], "has no unit"),
        (["calibrate", "five-sites", "--rtt", "10ms", "--jitter", "50ms"], "jitter"),
        (["lab", "exec", "one-site", "n99", "--", "true"], "n99"),
        (["run", "endpoint-latensy"], "endpoint-latency"),
        (["run", "endpoint-latency", "--systems", "quorun"], "quorum"),
        (["run", "endpoint-latency", "--topology", "mars"], "mars"),
        (["run", "endpoint-latency", "--client", "mars"], "dc1"),
        (["run", "endpoint-latency", "--storage", "tape"], "memory"),
        (["run", "endpoint-latency", "--rtt", "50"], "--rtt"),
        (["run", "endpoint-latency", "--rtt", "1ms", "--jitter", "5ms"], "jitter"),
        (["run", "round-trips", "--rtt", "50ms"], "--set round_trips.rtts="),
        (["run", "round-trips", "--jitter", "1ms"], "--set round_trips.jitter="),
        (["run", "--resume", "b", "--rtt", "5ms"], "leave --resume out"),
        (["run", "--resume", "b", "--dry-run"], "leave --resume out"),
        (["study", "show", "endpoint-latensy"], "did you mean `endpoint-latency`"),
        (["completion", "tcsh"], "bash"),
        (["run", "endpoint-latency", "--out", "/proc/nowhere/bundle"], "/proc/nowhere/bundle"),
        (["run", "endpoint-latency", "--option", "quorum"], "SYSTEM.KEY=VALUE"),
        (["run", "endpoint-latency", "--option", "quorum.api"], "SYSTEM.KEY=VALUE"),
        (["run", "endpoint-latency", "--option", "quorum.api=bop"], "'bob'"),
        (["run", "endpoint-latency", "--option", "quorum.apy=bob"], "did you mean `api`"),
        (["run", "endpoint-latency", "--option", "quorum.api={"], "YAML"),
        (["run", "endpoint-latency", "--option", "quorun.api=bob"], "did you mean `quorum`"),
        (["run", "endpoint-latency", "--option", "garage.a=1"], "garage is not measured"),
        (["run", "endpoint-latency", "--bobd", "/bin/sh"], "bob is not measured"),
        (["run", "endpoint-latency", "--systems", "bob", "--bobd", "/nonexistent"], "not exist"),
        (["run", "endpoint-latency", "--systems", "bob", "--bobd", "/etc"], "is a directory"),
        (["run", "endpoint-latency", "--systems", "bob", "--bobd", "/etc/passwd"], "executable"),
        (["run", "endpoint-latency", "--systems", "service"], "command"),
        (["report", "/nonexistent"], "/nonexistent"),
        (["system", "install", "ceph"], "garage"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_a_users_mistake_ends_with_code_2_and_a_paragraph(arguments, says):
    done = here(*arguments)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_what_is_not_built_ends_with_code_3_and_the_command_that_builds_it(tmp_path):
    done = wanlat("run", "endpoint-latency", WANLAT_BIN_DIR=str(tmp_path))
    assert done.returncode == 3
    assert "make build" in done.stderr


def test_a_store_that_is_not_installed_ends_with_code_3_and_how_to_get_it(tmp_path):
    done = wanlat(
        *("run", "endpoint-latency", "--systems", "garage", "--out", str(tmp_path / "b")),
        WANLAT_CACHE=str(tmp_path / "empty"),
        PATH="/usr/bin:/bin",
    )
    assert done.returncode == 3, done.stderr
    assert "wanlat system install garage" in done.stderr
    assert not (tmp_path / "b").exists()


def test_an_option_is_given_once(tmp_path):
    option = ("--option", "quorum.api=bob")
    done = wanlat("run", "endpoint-latency", *option, *option)
    assert done.returncode == 2
    assert "given twice" in done.stderr


def test_a_program_that_is_not_bob_is_recognized(tmp_path, monkeypatch):
    lsof = tmp_path / "lsof"  # which a real one needs
    lsof.write_text("#!/bin/sh\n")
    lsof.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    impostor = tmp_path / "bobd"
    impostor.write_text("#!/bin/sh\necho something else\n")
    impostor.chmod(0o755)
    done = wanlat("run", "endpoint-latency", "--systems", "bob", "--bobd", str(impostor))
    assert done.returncode == 3, done.stderr
    assert str(impostor) in done.stderr


def test_a_system_without_any_of_the_endpoints_says_what_it_has(tmp_path):
    study = tmp_path / "study.yaml"
    study.write_text("name: mine\ntopology: five-sites\nendpoints: [Put, Get]\n")
    done = wanlat("run", str(study))
    assert done.returncode == 2
    assert "System quorum has none of the endpoints of study mine (Put and Get)" in done.stderr
    assert "GetObject" in done.stderr


def test_too_few_nodes_is_said_before_anything_starts(tmp_path):
    file = tmp_path / "crowd.yaml"
    file.write_text("name: crowd\nsites: [{name: dc1, nodes: 65}]\nlinks: {}\n")
    done = wanlat("run", "endpoint-latency", "--topology", str(file))
    assert done.returncode == 2, done.stderr
    assert "65" in done.stderr


def test_a_directory_that_holds_something_is_never_overwritten(tmp_path):
    (tmp_path / "precious").write_text("data")
    done = wanlat("run", "endpoint-latency", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize("command", [["run"], ["study", "validate"]])
def test_every_mistake_of_a_study_is_reported_with_its_line(tmp_path, command):
    file = tmp_path / "study.yaml"
    file.write_text(
        "name: mine\ntopology: five-sites\nendpoints: [GetObject, GetObjekt]\nsamples: -1\n"
        "smaples: 3\n"
    )
    done = wanlat(*command, str(file))
    assert done.returncode == 2
    for line in (f"{file}:3:", f"{file}:4:", f"{file}:5:"):
        assert line in done.stderr


def test_a_topology_named_by_path_is_taken_from_where_the_study_is(tmp_path):
    (tmp_path / "bad.yaml").write_text("name: bad\nsites: []\n")
    study = tmp_path / "study.yaml"
    study.write_text("name: mine\ntopology: bad.yaml\nendpoints: [GetObject]\n")
    done = wanlat("run", str(study))
    assert done.returncode == 2
    assert f"{tmp_path / 'bad.yaml'}:2" in done.stderr


def test_topologies_are_listed_as_json():
    done = wanlat("topology", "list", "--json")
    assert {"five-sites", "one-site", "three-datacenters"} <= {
        entry["name"] for entry in json.loads(done.stdout)
    }


def test_systems_are_listed_with_version_and_hash():
    entries = {
        entry["name"]: entry for entry in json.loads(wanlat("system", "list", "--json").stdout)
    }
    assert entries["quorum"]["installed"]
    assert len(entries["quorum"]["sha256"]) == 64
    assert {"garage", "minio"} <= entries.keys()


def test_calibrate_prints_exactly_one_json_document(tmp_path):
    file = tmp_path / "near.yaml"
    file.write_text(
        "name: near\nsites: [{name: a, nodes: [n1]}, {name: b, nodes: [n2]}]\n"
        "links: {default: {rtt: 4ms}}\n"
    )
    # On however late a network: so this one has to pass, and the next test's to fail.
    chart = str(tmp_path / "near.png")
    done = subprocess.run(
        late_network.command("calibrate", str(file), "--samples", "30", "--json", "--chart", chart),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["topology"] == "near"
    assert {pair["verdict"] for pair in document["pairs"]} | {document["verdict"]} == {"pass"}
    assert min(pair["rtt_ms"]["min"] for pair in document["pairs"]) > 3.9


def test_calibrate_finds_a_network_that_is_not_the_one_asked_for(tmp_path):
    for name, rtt in (("asked", "4ms"), ("built", "6ms")):
        (tmp_path / f"{name}.yaml").write_text(
            f"name: {name}\nsites: [{{name: a, nodes: [n1]}}, {{name: b, nodes: [n2]}}]\n"
            f"links: {{default: {{rtt: {rtt}}}}}\n"
        )
    done = wanlat(
        *("calibrate", str(tmp_path / "asked.yaml"), "--applied", str(tmp_path / "built.yaml")),
        *("--samples", "30", "--json", "--chart", str(tmp_path / "chart.png")),
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"] == "fail"


def test_lab_exec_passes_output_and_exit_code_through():
    done = wanlat("lab", "exec", "one-site", "n2", "--", "sh", "-c", "echo here; exit 7")
    assert (done.returncode, done.stdout) == (7, "here\n")


def test_lab_exec_keeps_the_commands_own_options_and_directory():
    done = wanlat("lab", "exec", "one-site", "n1", "--", "ls", "-d", str(Path.cwd()))
    assert done.stdout.strip() == str(Path.cwd())
    assert wanlat("lab", "exec", "one-site", "n1", "--", "pwd").stdout.strip() == str(Path.cwd())


def test_doctor_says_what_works():
    done = wanlat("doctor", "--json")
    document = json.loads(done.stdout)
    checks = {check["name"]: check for check in document["checks"]}
    assert document["verdict"] == "pass", done.stderr
    assert checks["sandbox"]["ok"]
    assert not checks["netem"]["required"]


def test_doctor_finds_what_is_not_built(tmp_path):
    done = wanlat("doctor", "--json", WANLAT_BIN_DIR=str(tmp_path))
    assert done.returncode == 3
    assert "make build" in done.stderr
