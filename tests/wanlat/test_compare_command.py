"""``wanlat compare`` and the script for a store's CI: exit codes, and what is said where."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.bundles import Does, write_bundle, write_round_trips_bundle
from tests.command_line import here, ran, write_program

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "no-more-round-trips.sh"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Bundles of a made-up store, whose PutObject takes so many round trips."""
    directory = tmp_path_factory.mktemp("runs")

    def run(name: str, trips: float, **settings: Any) -> Path:
        (directory / name).mkdir()
        does = {
            ("quorum", "PutObject", "unknown"): [Does(1, trips)],
            ("quorum", "GetObject", "unknown"): [Does(1, 1)],
        }
        settings = {"samples": 8, "repeats": 2, "manifest": {"storage": "memory"}, **settings}
        return write_round_trips_bundle(directory / name, does=does, **settings)

    latencies = directory / "latencies"
    latencies.mkdir()
    write_bundle(latencies, systems=[("quorum", "0.1.0")], n=20)
    return {
        "old": run("old", 2, seed=1),
        "again": run("again", 2, seed=2),
        "worse": run("worse", 3, seed=3),
        "disk": run("disk", 2, seed=4, manifest={"storage": "disk"}),
        "latencies": latencies,
    }


def compare(*arguments: object) -> subprocess.CompletedProcess[str]:
    return here("compare", *map(str, arguments))


def test_a_round_trip_more_ends_with_1_one_document_and_what_changed(runs: Any) -> None:
    done = compare(runs["old"], runs["worse"], "--json")
    assert done.returncode == 1, done.stderr
    made = json.loads(done.stdout)
    assert not made["gate"]["passed"]
    assert [each["endpoint"] for each in made["endpoints"] if each["fails"]] == ["PutObject"]
    assert "round trips 2.00 → 3.00, +1.00 [+" in done.stderr
    assert "FAIL (round-trips, failures): 1 endpoint" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "options", "code"),
    [
        ("old", "again", "", 0),
        ("old", "worse", "--round-trips 1.5", 0),
        ("old", "worse", "--gate intercept", 0),
        ("old", "worse", "--gate intercept,latency", 1),
        ("old", "worse", "--gate latency --latency 60%,5ms", 0),
        ("old", "worse", "--gate latency --latency 40%,5ms", 1),
        # What was not measured alike; what a user gets wrong.
        ("old", "disk", "", 2),
        ("old", "disk", "--force", 0),
        ("old", "again", "--gate speed", 2),
        ("old", "again", "--latency 5ms,6ms", 2),
        ("old", "again", "--share 0.1", 2),
        ("old", "again", "--as garage=quorum", 2),
        ("latencies", "latencies", "--gate round-trips", 2),
    ],
)
def test_thresholds_and_gates_decide(
    runs: Any, old: str, new: str, options: str, code: int
) -> None:
    done = compare(runs[old], runs.get(new, new), *options.split())
    assert done.returncode == code, done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(("code", "new"), [(0, "again"), (1, "worse")])
def test_the_script_measures_compares_and_ends_as_the_comparison(
    runs: Any, tmp_path: Path, code: int, new: str
) -> None:
    # A `wanlat` that notes its arguments and ends as a comparison may.
    note = 'printf "%s\\n" "$* ${WANLAT_QUORUM_BINARY##*/}" >>log'
    stub = write_program(tmp_path / "wanlat", f"{note}\n[ $1 = run ] || exit {code}")
    for each in ("old-program", "new-program"):
        write_program(tmp_path / each, "")
    named = os.environ | {"WANLAT": str(stub), "OUT": "out"}
    done = ran(SCRIPT, "quorum", "./old-program", "./new-program", cwd=tmp_path, env=named)
    assert done.returncode == code, done.stderr
    *measured, compares = (tmp_path / "log").read_text().splitlines()
    for line, which in zip(measured, ("old", "new"), strict=True):
        wanted = f"--systems quorum --seed 1 --out out/{which} {which}-program"
        assert line.endswith(f"round-trips-in-ci.yaml {wanted}")
    bundles = {"out/old": str(runs["old"]), "out/new": str(runs[new])}
    assert here(*(bundles.get(word, word) for word in compares.split())).returncode == code
