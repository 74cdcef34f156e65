"""Envelopes as they are published: packed, shown on a page, and what etcd's guide says of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from answers import changing

from tests.bundles import MINIO, STUDY, write_advice, write_envelope, write_placements, write_sweep
from tools.results import RESULTS, measure, pages
from wanlat import open_bundle
from wanlat.analysis.claims import evaluated
from wanlat.analysis.report import report
from wanlat.analysis.report.claims import write_claims
from wanlat.experiments.config.claims import load_publication

LIMITS_MS = (290.0, 300.0, 310.0)
TEMPLATE = RESULTS / "envelope" / "README.md.j2"


def write_map(directory: Path) -> None:
    """Write three clusters with different limits, and the requests and writes of each."""

    def point(path: Path, _series: tuple[str, str], at: Mapping[str, Any]) -> None:
        write_envelope(path, limit_ms=LIMITS_MS[at["replicate"] - 1])
        requests = pd.read_parquet(path / "samples.parquet")
        requests["phase"], requests["rtt_step"] = "window", 1
        requests["key"], requests["operation"] = "k1", "write"
        requests["drill_client"], requests["due_ns"] = "user", requests["start_ns"]
        requests["elapsed_ns"] = requests["total_ns"]
        requests.to_parquet(path / "samples.parquet")
        lines = {
            "ledger": {"state": "invoked", "id": 0, "op": "put", "key": "k1", "t_ns": 1_500_000},
            "verification": {"round": "test 1", "node": "n1", "key": "k1", "found": "yes"},
        }
        for name, line in lines.items():
            (path / f"{name}.jsonl").write_text(json.dumps(line) + "\n")

    study = {**STUDY, "replicates": 3}
    replicates = {"replicate": [1, 2, 3]}
    write_sweep(directory, replicates, systems=(MINIO,), study=study, write_point=point)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in for docs/results/envelope."""
    monkeypatch.setattr(measure, "CHECKOUT", tmp_path)

    def command(_: Path, name: str) -> str:
        return f"wanlat run {name}"

    monkeypatch.setattr(pages, "command", command)
    home = tmp_path / "docs" / "results" / "envelope"
    home.mkdir(parents=True)
    shutil.copy(TEMPLATE, home)
    return home


KINDS = {
    "etcd": write_map,
    "advice-etcd": lambda place: write_advice(place, replicates=3),
    "place-etcd": write_placements,
}


@pytest.mark.parametrize("names", [["etcd"], ["advice-etcd"], [*KINDS]], ids=" ".join)
def test_the_page_has_a_section_for_each_bundle_that_is_there(home: Path, names: list[str]) -> None:
    for name in names:
        KINDS[name](home / name)
        for manifest in (home / name).rglob("manifest.json"):
            is_whole = manifest.parent == home / name
            when = {"started": "2026-11-26T22:20:00+00:00", "wall_s": 2160 if is_whole else 1800}
            with changing(manifest) as document:
                document.update(when)
        report(home / name)
    page = pages.rendered(home / TEMPLATE.name)
    of = {
        "etcd": [
            "With its defaults, MinIO holds up to 300 ms [271, 332] RTT, 10.0 % [",
            "MinIO, no loss: 1 of 3 pairs of regions are inside (london–new-york 75 ms)",
            "| RTT | no loss | 300 ms [271, 332] | ",
            "](etcd/charts/envelope.png)",
        ],
        "advice-etcd": [
            "## Which timeout for MinIO?",
            "election 500 ms holds up to",
            "| MinIO | election 1 s (the default) | ",
            "](advice-etcd/charts/advice.png)",
        ],
        "place-etcd": [
            "## Where to put quorum?",
            "Prediction error: median 1.0 [0.9, 1.1] ms",
            "](place-etcd/charts/placements.png)",
        ],
    }
    for name, said in of.items():
        for each in said:
            assert (each in page) is (name in names), each
        again, not_yet = page.split("## Not measured yet")
        assert f"wanlat run {name}\n" in (again if name in names else not_yet)
    assert page.count("It took 36 min (a cluster 30 min).") == len(names)
    assert "None" not in page
    assert "\n\n\n" not in page


def test_a_published_envelope_says_the_same_and_each_network_can_be_opened(
    home: Path, tmp_path: Path
) -> None:
    measured, place = tmp_path / "measured", home / "etcd"
    write_map(measured)
    report(measured)
    before = (measured / "summary.json").read_text()
    measure.publish(measured, place)
    assert not [*place.glob("points/*/*.jsonl"), *place.glob("points/*/samples.parquet")]
    assert (place / "charts" / "envelope.png").is_file(), "a page shows it, though by a template"
    assert not (place / "report.html").exists()
    report(place)
    assert (place / "summary.json").read_text() == before
    opened = open_bundle(place).points["minio-replicate-2"]
    requests = opened.samples
    assert set(requests["rtt_step"]) == {1}
    assert set(requests["phase"]) == {"window"}
    assert opened.table("ledger")["key"].tolist() == ["000000"]
    assert opened.table("verification")["round"].tolist() == ["test 1"]
    assert opened.figures["envelope.tests"]["number"].tolist() == [0, 1, 2]


def etcd_claims(*rows: Mapping[str, Any], kind: str = "envelope.limits") -> dict[str, Any]:
    """Judge the claims on etcd's timeouts on the rows of one report."""
    names, found = kind.split("."), [{"bundle": "b", "system": "etcd", **row} for row in rows]
    summary = {names[0]: {names[1]: found}}
    claims = load_publication("etcd").to_dict()["claims"]
    return {each["id"]: each for each in evaluated(claims, summary)}


DEFAULTS = {"axis": "rtt", "at": "no loss", "by_default": True, "clusters": 5}


@pytest.mark.parametrize(
    ("limit_ms", "verdicts"),
    [
        ((490.0, 505.0, 520.0), ("holds", "does not hold")),
        ((60.0, 70.0, 80.0), ("holds", "holds")),
        ((90.0, 99.0, 120.0), ("holds", "not decided")),
        ((5.0, 6.0, 7.0), ("does not hold", "holds")),
    ],
)
def test_etcds_guide_is_judged_by_the_limit_of_its_defaults(
    limit_ms: tuple[float, float, float], verdicts: tuple[str, ...]
) -> None:
    low, middle, high = limit_ms
    limit = {**DEFAULTS, "limit": middle, "limit_ci95": [low, high]}
    beside = {**DEFAULTS, "at": "1 % lost", "limit": 7.0, "limit_ci95": [6.0, 8.0]}
    found = etcd_claims(limit, beside, limit | {"by_default": False})
    names = ("etcd-defaults-local", "etcd-election-ten-rtts")
    for name, verdict in zip(names, verdicts, strict=True):
        assert found[name]["verdict"] == verdict, name
        (compared,) = found[name]["comparisons"]
        assert (compared["value"], compared["clusters"]) == (middle, 5)


def choice(value_ms: float, limit: float, answered_s: float, idle_kb_s: float) -> dict[str, Any]:
    return {
        "timeout": "election",
        "value_ms": value_ms,
        "rule_ms": value_ms / 10,
        "answered_s": answered_s,
        "answered_s_ci95": [0.9 * answered_s, 1.1 * answered_s],
        "idle_kb_s": idle_kb_s,
        "idle_kb_s_ci95": [0.9 * idle_kb_s, 1.1 * idle_kb_s],
        "clusters": 3,
        "limits": [DEFAULTS | {"limit": limit, "limit_ci95": [0.97 * limit, 1.03 * limit]}],
    }


def test_etcds_guide_is_judged_by_what_other_timeouts_hold_and_cost() -> None:
    rows = choice(500.0, 335, 0.8, 20), choice(1000.0, 505, 1.2, 12), choice(5000.0, 505, 7.4, 4)
    found = etcd_claims(*rows, kind="advice.choices")
    verdicts = {name.removeprefix("etcd-"): str(each["verdict"]) for name, each in found.items()}
    assert verdicts["election-ten-rtts-needed"] == "does not hold"
    assert verdicts["election-ten-rtts-enough"] == "not decided", "505 of 500 ms"
    assert verdicts["high-election-detects-late"] == "holds"
    assert verdicts["low-heartbeat-sends-more"] == "holds"
    assert verdicts["same-for-all-members"] == "cannot be tested here"
    assert verdicts["defaults-local"] == "not decided", "no bundle of the defaults"
    assert len(found["etcd-election-ten-rtts-enough"]["comparisons"]) == 3


def test_claims_that_no_bundle_is_about_are_not_measured(tmp_path: Path) -> None:
    """And those of one that there is are judged on the page."""
    write_envelope(tmp_path / "results" / "minio")
    report(tmp_path / "results" / "minio")
    publication = load_publication("etcd").to_dict()
    page = write_claims([tmp_path / "results"], [publication], tmp_path / "page").read_text()
    assert page.count("| not measured | ") == len(publication["claims"]) - 3
    assert page.count("| cannot be tested here | ") == 3
    of_minio = json.loads(json.dumps(publication).replace('"etcd"', '"minio"'))
    page = write_claims([tmp_path / "results"], [of_minio], tmp_path / "page").read_text()
    assert "| does not hold | 0 of 1 | limit ≤ 100 | 300" in page
