"""What is shipped is listed, shown and valid; a dry run says what would run and starts nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import here
from wanlat.commands import completion
from wanlat.experiments.config.files import find as find_study
from wanlat.experiments.config.files import shipped as studies
from wanlat.experiments.drill.files import find as find_drill
from wanlat.experiments.drill.files import shipped as drills
from wanlat.systems import registry
from wanlat.systems.engine import protocols
from wanlat.systems.engine.protocols.http import HttpProtocol
from wanlat.topologies.load import find as find_topology
from wanlat.topologies.load import shipped as topologies


def document(*arguments: str) -> Any:
    """Return the one JSON document of a command."""
    done = here(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("study list", studies()),
        ("run", studies()),
        ("drill list", drills()),
        ("topology list", topologies()),
        ("system list", [*registry.names(), "grpcurl"]),
    ],
)
def test_what_is_shipped_is_listed(command: str, names: list[str]) -> None:
    entries = document(*command.split())
    assert [each["name"] for each in entries] == names
    table = here(*command.split()).stdout.splitlines()
    assert [line.split()[0] for line in table] == ["NAME", *names]


def test_a_store_is_registered_for_the_command_that_was_given_it_alone(tmp_path: Path) -> None:
    (tmp_path / "system.yaml").write_text("schema: 1\nname: own\nextends: quorum\n")
    known = registry.names()
    assert document("system", "show", f"{tmp_path}/")["name"] == "own"
    assert registry.names() == known
    registry.adopt(f"{tmp_path}/")
    assert "own" in registry.names()


def test_a_store_that_a_test_registered_is_gone_after_it() -> None:
    assert "own" not in registry.names()


def test_a_protocol_with_templates_is_one_that_a_new_definition_can_begin_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other(HttpProtocol):
        name = "other"
        templates = (("system.yaml", "new-http.yaml"),)

    monkeypatch.chdir(tmp_path)
    assert here("system", "new", "mine", "--protocol", "other").returncode == 2
    monkeypatch.setattr(protocols, "PROTOCOLS", {**protocols.PROTOCOLS, "other": Other()})
    assert completion.protocol("o") == ["other"]
    done = here("system", "new", "mine", "--protocol", "other")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine" / "system.yaml").is_file()


@pytest.mark.parametrize(
    ("kind", "name", "path"),
    [
        *(("study", name, find_study(name)) for name in studies()),
        *(("drill", name, find_drill(name)) for name in drills()[:2]),
        *(("topology", name, find_topology(name)) for name in topologies()),
    ],
)
def test_one_is_shown_as_it_is_written_and_is_valid(kind: str, name: str, path: Path) -> None:
    done = here(kind, "show", name)
    assert done.stdout.rstrip() == path.read_text("utf-8").rstrip()
    assert ", of " in done.stderr or "requested RTT" in done.stderr
    assert document(kind, "show", name)["name"] == name
    assert f"{name} is valid: " in here(kind, "validate", str(path)).stderr


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("quorum", {"apis": ["s3", "bob"], "nodes": {"min": 1, "max": 64}, "installed": True}),
        ("garage", {"apis": ["s3"], "pinned": "2.5.0"}),
        ("bob", {"apis": ["bob"], "title": "Bob"}),
        ("service", {"apis": ["grpc"]}),
    ],
)
def test_a_system_is_shown(name: str, expected: dict[str, Any]) -> None:
    shown = document("system", "show", name)
    assert {key: shown[key] for key in expected} == expected
    options = {each["name"]: each for each in shown["options"]}
    assert list(options) == list(registry.get(name).options_model.model_fields)
    assert all(each["type"] for each in options.values())
    if name == "quorum":
        assert (options["api"]["type"], options["api"]["default"]) == ("s3|bob", "s3")
        replicas = options["replication_factor"]
        assert replicas["default"] is None and replicas["description"].startswith("Replicas of")


# -- dry runs -------------------------------------------------------------------------------


def dry(*arguments: str) -> Any:
    return document("run", *arguments, "--dry-run")


def test_a_dry_run_says_what_would_run_on_what_and_starts_nothing(tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    told = dry("endpoint-latency", "--samples", "10", "--backend", "wire", "-o", str(out))
    assert (told["study"], told["backend"], told["directory"]) == (
        *("endpoint-latency", "wire", str(out)),
    )
    (point,) = told["points"]
    assert (point["system"], point["topology"], point["nodes"]) == ("quorum", "five-sites", 5)
    assert (point["client"], point["target"], point["rtt_ms"]) == ("n1", "n1", 100)
    assert point["version"]
    endpoints = {each["endpoint"]: each for each in point["endpoints"]}
    assert endpoints["PutObject"]["lower_bound_round_trips"] == 1
    assert {each["samples"] for each in endpoints.values()} == {10}
    assert told["samples"] == 10 * len(endpoints)
    assert not out.exists()
    done = here("run", "endpoint-latency", "--dry-run")
    assert "system: quorum" in done.stdout and "Nothing was started." in done.stderr


def test_the_stated_time_grows_with_samples_and_with_the_rtt() -> None:
    def requests_s(*more: str) -> float:
        return float(dry("endpoint-latency", *more)["takes_s"]["requests"][0])

    base, more = requests_s("--samples", "10"), requests_s("--samples", "20")
    nearer = requests_s("--samples", "10", "--rtt", "10ms", "--jitter", "0ms")
    # At least one round trip of 100 ms for each of 5 × (10 measured and 5 to warm up).
    assert 7.5 <= base < 20 and more > base + 4.9 and nearer < base / 5


@pytest.mark.parametrize(
    ("words", "took_s"),
    [  # of runs of these on two cores that others were using, too, with the report
        ("endpoint-latency --systems quorum --samples 20", 24.7),
        ("round-trips --systems quorum --samples 3 --set round_trips.repeats=1", 33.2),
        (
            "mixed-load --systems quorum --set load.duration=10s --set load.idle=5s "
            "--set prefill.objects=200",
            36.9,
        ),
        (
            "disk-reclaim --systems quorum --set reclaim.objects=200 --set reclaim.watch=10s",
            36.1,
        ),
    ],
)
def test_what_a_study_took_is_in_the_range_that_is_stated(words: str, took_s: float) -> None:
    least_s, most_s = dry(*words.split())["takes_s"]["total"]
    assert least_s <= took_s <= most_s
    assert took_s / least_s < 2 and most_s / took_s < 8


def test_every_point_of_a_matrix_is_listed_and_has_the_overridden_network() -> None:
    network = ("--set", "samples=2", "--rtt", "30ms", "--jitter", "0ms")
    told = dry("endpoint-latency", "--matrix", "nodes=5,10", *network)
    assert [(point["nodes"], point["rtt_ms"]) for point in told["points"]] == [(5, 30), (10, 30)]
    whole = sum(point["takes_s"]["total"][0] for point in told["points"])
    assert told["takes_s"]["total"][0] == pytest.approx(whole, abs=0.2)


def test_a_dry_drill_says_what_would_be_broken_and_which_claims_would_be_checked(
    tmp_path: Path,
) -> None:
    claims = tmp_path / "claims.yaml"
    claims.write_text(
        "system: quorum\nclaims:\n  - {id: mine, claim: all stays, source: nobody, "
        "drill: one-node-killed, durability: intact}\n"
    )
    out = tmp_path / "bundle"
    wanted = ("run", "one-node-killed", "--systems", "quorum", "--seed", "7", "--dry-run")
    told = document("drill", *wanted, "-o", str(out), "--claims", str(claims))
    assert (told["system"], told["seed"], told["backend"]) == ("quorum", 7, "auto")
    (fault,), (victim,) = told["faults"], told["roles"]["victim"]
    assert fault["fault"] == f"kill {victim}"
    assert told["at_most_s"].pop("total") == sum(told["at_most_s"].values())
    checked = {each["id"]: each["claim"] for each in told["claims"]}
    assert {"mine", "quorum-nothing-lost"} <= checked.keys() and checked["mine"] == "all stays"
    assert not out.exists()
    done = here("drill", *wanted)
    assert f"kill {victim}" in done.stdout and "quorum-nothing-lost" in done.stdout
    assert "Nothing was started." in done.stderr
