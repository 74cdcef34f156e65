"""What etcd's guide says of timeouts, judged by envelopes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.bundles import write_envelope
from wanlat.analysis.claims import evaluated
from wanlat.analysis.report import report
from wanlat.analysis.report.claims import write_claims
from wanlat.experiments.config.claims import load_publication


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
