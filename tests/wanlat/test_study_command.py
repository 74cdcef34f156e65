"""``wanlat study``, and what ``wanlat run`` says before it runs anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.wanlat.running import in_process
from wanlat import output
from wanlat.experiments.config.files import find, shipped


def dry(*arguments: str) -> Any:
    """Return the document of a dry run."""
    done = in_process(["run", *arguments, "--dry-run", "--json"])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", [["study", "list"], ["run"]])
def test_the_shipped_studies_are_listed(command: list[str]) -> None:
    done = in_process(command)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == shipped()
    listed = json.loads(in_process([*command, "--json"]).stdout)
    assert [each["name"] for each in listed] == shipped()
    assert all(each["description"] and each["systems"] for each in listed)


@pytest.mark.parametrize("name", shipped())
def test_one_is_shown_with_its_comments_and_what_it_measures(name: str) -> None:
    done = in_process(["study", "show", name])
    assert done.stdout.rstrip() == find(name).read_text(encoding="utf-8").rstrip()
    assert "measures: " in done.stderr and "endpoints: " in done.stderr
    assert in_process(["study", "show", name, "--quiet"]).stderr == ""


def test_every_shipped_study_is_valid() -> None:
    for name in shipped():
        done = in_process(["study", "validate", str(find(name))])
        assert done.returncode == 0, done.stderr
        assert f"{name} is valid: " in done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("topology: mars\nendpoints: [GetObject]\n", "mars"),
        ("topology: one-site\nendpoints: [GetObject]\noptions: {quorum: {apy: bob}}\n", "apy"),
        ("topology: one-site\nendpoints: [GetObject]\nsystems: [quorun]\n", "quorum"),
    ],
)
def test_what_a_study_names_is_validated_too(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"name: mine\n{text}")
    done = in_process(["study", "validate", str(file)])
    assert done.returncode == 2
    assert says in done.stderr


def test_a_dry_run_says_what_would_run_on_what_and_starts_nothing(tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    document = dry("endpoint-latency", "--samples", "10", "--backend", "wire", "-o", str(out))
    assert (document["study"], document["backend"]) == ("endpoint-latency", "wire")
    (point,) = document["points"]
    assert (point["system"], point["topology"], point["nodes"]) == ("quorum", "five-sites", 5)
    assert point["version"]
    assert (point["client"], point["target"], point["rtt_ms"]) == ("n1", "n1", 100)
    assert {each["endpoint"] for each in point["endpoints"]} >= {"PutObject", "GetObject"}
    assert all(each["samples"] == 10 for each in point["endpoints"])
    assert document["samples"] == 10 * len(point["endpoints"])
    assert not out.exists()
    done = in_process(["run", "endpoint-latency", "--dry-run"])
    assert "quorum" in done.stdout and "takes at least" in done.stdout


def test_the_stated_time_grows_with_samples_and_with_the_rtt() -> None:
    base = dry("endpoint-latency", "--samples", "10")["at_least_s"]
    assert base["total"] == pytest.approx(
        base["start"] + base["stated"] + base["requests"], abs=0.2
    )
    # At least one round trip of 100 ms for each of 5 × (10 measured and 5 to warm up).
    assert 7.5 <= base["requests"] < 20
    more = dry("endpoint-latency", "--samples", "20")["at_least_s"]
    nearer = dry("endpoint-latency", "--samples", "10", "--rtt", "10ms", "--jitter", "0ms")
    assert more["requests"] > base["requests"] + 4.9
    assert nearer["points"][0]["rtt_ms"] == 10
    assert nearer["at_least_s"]["requests"] < base["requests"] / 5
    assert nearer["at_least_s"]["start"] < base["start"], "links without jitter are calibrated soon"


def test_every_point_of_a_matrix_is_listed_and_has_the_overridden_network() -> None:
    document = dry(
        *("endpoint-latency", "--matrix", "nodes=5,10", "--set", "samples=2", "--rtt", "30ms"),
        *("--jitter", "0ms"),
    )
    assert [point["nodes"] for point in document["points"]] == [5, 10]
    assert [point["rtt_ms"] for point in document["points"]] == [30, 30]
    assert document["at_least_s"]["total"] == pytest.approx(
        sum(point["at_least_s"]["total"] for point in document["points"]), abs=0.2
    )


def test_studies_that_state_their_time_keep_to_it() -> None:
    steps = dry("round-trips")
    assert steps["at_least_s"]["stated"] >= 15 * 2, "15 RTT steps of 2 s to settle"
    (point,) = steps["points"]
    assert {each["samples"] for each in point["endpoints"]} == {15 * 15}
    load = dry("mixed-load", "--systems", "minio-nginx") if _has_minio() else None
    assert load is None or load["at_least_s"]["stated"] > 600


def _has_minio() -> bool:
    entries = json.loads(in_process(["system", "list", "--json"]).stdout)
    return any(each["name"] == "minio-nginx" and each["installed"] for each in entries)


def test_quiet_leaves_results_and_verbose_says_more(capsys: pytest.CaptureFixture[str]) -> None:
    output.be_quiet(True)
    output.remark("remark")
    output.say("result")
    with output.reporter(log=True) as report:
        report("stage")
    output.be_quiet(False)
    output.be_verbose(True)
    with output.reporter() as report:
        report("first stage", 0, 10, "detail")
        report("next stage")
    output.be_verbose(False)
    said = capsys.readouterr().err.splitlines()
    assert said == ["result", "first stage: detail", "next stage"]
