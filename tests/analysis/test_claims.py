"""Claims as data: what is true of known rows holds, what is not does not; noise decides nothing."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.bundles import GARAGE, MINIO, write_load, write_sweep
from tests.command_line import CHECKOUT
from wanlat.analysis.claims import Bound, Verdict, claims_block, deciding, evaluated, table_of
from wanlat.analysis.section import rests_on
from wanlat.analysis.summary import blocks_of
from wanlat.bundle.documents import Titles
from wanlat.bundle.matrix import read_matrix
from wanlat.experiments.config.claims import PublishedClaim, publications

HOLDS, DOES_NOT, NOT_DECIDED = Verdict.HOLDS, Verdict.DOES_NOT_HOLD, Verdict.NOT_DECIDED
MIB = 2**20


@pytest.mark.parametrize(
    ("spec", "value", "ci95", "verdict"),
    [
        ({"at_least": 1}, 1.5, (1.2, 1.8), HOLDS),
        ({"at_least": 1}, 0.5, (0.2, 0.8), DOES_NOT),
        ({"at_least": 1}, 1.1, (0.9, 1.3), NOT_DECIDED),
        ({"at_most": 1}, 0.5, (0.2, 0.8), HOLDS),
        ({"at_least": 1}, 1.5, None, NOT_DECIDED),
        ({"within": [0.9, 1.1]}, 1.0, (0.95, 1.05), HOLDS),
        ({"within": [0.9, 1.1]}, 1.0, (0.8, 1.2), NOT_DECIDED),
        ({"within": [0.9, 1.1]}, 1.3, (1.2, 1.4), DOES_NOT),
        ({"outside": [0.9, 1.1]}, 1.3, (1.2, 1.4), HOLDS),
        ({"outside": [0.9, 1.1]}, 1.0, (0.95, 1.05), DOES_NOT),
        ({"at_least": 0.9}, 1.0, (0.97, 1.0), HOLDS),  # of a share, whose interval ends at 1
        ({"at_most": 1.0}, 1.0, (1.0, 1.0), NOT_DECIDED),
    ],
)
def test_a_verdict_needs_an_interval_on_one_side_of_the_bound(
    spec: dict[str, Any], value: float, ci95: tuple[float, float] | None, verdict: Verdict
) -> None:
    assert Bound.from_claim(spec).judge(value, ci95)[0] is verdict
    if ci95 is not None and min(ci95) > 0:
        assert Bound.from_claim(spec).judge(value, ci95, is_ratio=True)[0] is verdict


def row(system: str, size: int, mean_ms: float, **more: Any) -> dict[str, Any]:
    """A row of sizes whose mean is known to a tenth."""
    ci95 = [0.9 * mean_ms, 1.1 * mean_ms]
    known = {"system": system, "object_bytes": size, "mean_ms": mean_ms, "mean_ci95_ms": ci95}
    return {**known, "ok": 100, "others": {}, **more}


ROWS = [
    *(row("a", size, 0.5 * size / MIB, placement=p) for size in (MIB, 4 * MIB) for p in "xy"),
    *(row("b", size, 1.0 * size / MIB) for size in (MIB, 4 * MIB)),
    *(row("c", size, 0.52 * size / MIB) for size in (MIB, 4 * MIB)),
]
OVER_A = {"id": "over-a", "claim": "a is faster", "rows": "sizes.entries", "figure": "mean_ms"} | {
    "over": {"system": "a", "placement": "any"},
    "same": ["object_bytes"],
    "at_least": 1,
}


def results(**changed: Any) -> list[Any]:
    return evaluated([OVER_A | changed], {"sizes": {"entries": ROWS}})


def test_rows_are_compared_with_those_that_agree_in_what_must_be_the_same() -> None:
    of_b, of_c = results(where={"system": ["b", "c"]})  # a list: a verdict for each
    assert (of_b["of"], of_b["verdict"]) == ({"system": "b"}, HOLDS)
    assert (of_c["of"], of_c["verdict"]) == ({"system": "c"}, NOT_DECIDED)
    compared = of_b["comparisons"]
    # Each size with each placement of a.
    assert {(c["where"]["object_bytes"], c["where"]["over placement"]) for c in compared} == {
        (size, placement) for size in (MIB, 4 * MIB) for placement in "xy"
    }
    assert all(c["n"] == [100, 100] for c in compared)
    assert compared[0]["value"] == pytest.approx(2.0)
    assert compared[0]["ci95"] == pytest.approx((1.74, 2.31), abs=0.02)
    assert deciding(of_b) == max(compared, key=lambda each: each["p"])


def test_ranges_and_figures_per_column_are_data_too() -> None:
    per_byte = {"per": "object_bytes", "over": {"object_bytes": {"largest_below": 4 * MIB}}}
    where = {"system": "b", "object_bytes": {"at_least": 4 * MIB}}
    (found,) = results(where=where, same=["system"], **per_byte)
    (only,) = found["comparisons"]
    assert only["where"] == {"system": "b", "object_bytes": 4 * MIB, "over object_bytes": MIB}
    assert only["value"] == pytest.approx(1.0)
    (small,) = results(where={"system": "b", "object_bytes": "1MiB"})
    assert {each["where"]["object_bytes"] for each in small["comparisons"]} == {MIB}
    (absent,) = results(where={"system": "z"})
    assert (absent["comparisons"], absent["verdict"]) == ([], NOT_DECIDED)


def test_replicates_are_clusters_of_one_figure_and_compared_one_by_one() -> None:
    times = {"a": (1.0, 2.0, 4.0), "b": (2.0, 4.4, 7.2)}
    repeated = [
        row(system, MIB, ms, others={"replicate": number})
        for system, of in times.items()
        for number, ms in enumerate(of, 1)
    ]
    claim = OVER_A | {"where": {"system": "b"}, "over": {"system": "a"}}
    for same in (["object_bytes"], ["object_bytes", "others"]):
        (found,) = evaluated([claim | {"same": same}], {"sizes": {"entries": repeated}})
        (one,) = found["comparisons"]
        assert (one["clusters"], one["n"]) == (3, [300, 300])
        assert one["value"] == pytest.approx((2.0 * 2.2 * 1.8) ** (1 / 3))
        assert one["ci95"][0] < 1.8 and one["ci95"][1] > 2.2


def test_of_many_on_the_brink_none_is_decided_alone() -> None:
    claim = {"id": "brink", "claim": "", "rows": "sizes.entries", "figure": "mean_ms"}
    claim |= {"at_least": 1, "same": ["object_bytes"]}
    for count, verdict in ((1, HOLDS), (2, NOT_DECIDED)):
        # Each excludes 1 by itself, barely: p is 0.03.
        rows = [row("a", n, 1.11, mean_ci95_ms=[1.01, 1.21]) for n in range(count)]
        assert evaluated([claim], {"sizes": {"entries": rows}})[0]["verdict"] is verdict


def of_clusters(*ratios: float, **changed: Any) -> Any:
    """The claim that a is faster than b, of pairs of clusters whose ratios are these."""
    rows = [
        each | {"bundle": f"run {n}"}
        for n, ratio in enumerate(ratios)
        for each in (row("a", MIB, 1.0), row("b", MIB, ratio))
    ]
    claim = OVER_A | {"where": {"system": "b"}, "same": ["bundle"], "clusters": ["bundle"]}
    (found,) = evaluated([claim | changed], {"sizes": {"entries": rows}})
    return found


def test_the_interval_of_several_clusters_is_over_clusters() -> None:
    """However well each one is known: what two of them differ by is what counts."""
    (alone,) = of_clusters(1.5)["comparisons"]
    assert (alone["verdict"], alone["clusters"]) == (HOLDS, 1)
    assert alone["ci95"] == pytest.approx((1.3, 1.73), abs=0.02)
    (apart,) = of_clusters(1.2, 1.9)["comparisons"]
    assert (apart["verdict"], apart["clusters"], apart["n"]) == (NOT_DECIDED, 2, [200, 200])
    assert apart["value"] == pytest.approx((1.2 * 1.9) ** 0.5)
    five = of_clusters(1.4, 1.5, 1.6, 1.5, 1.45)
    assert (five["verdict"], five["comparisons"][0]["clusters"]) == (HOLDS, 5)
    assert of_clusters(0.7, 0.72, 0.68, 0.7)["verdict"] is DOES_NOT


@pytest.mark.parametrize(
    ("holds_for", "means", "verdict"),
    [
        ("all", [2, 2, 0.5], DOES_NOT),
        ("most", [2, 2, 0.5], HOLDS),
        ("most", [2, 0.5, 0.5], DOES_NOT),
        ("most", [2, 1, 0.5], NOT_DECIDED),
    ],
)
def test_a_claim_may_be_meant_of_most(holds_for: str, means: list[float], verdict: Verdict) -> None:
    claim = {"id": "often", "claim": "", "rows": "sizes.entries", "figure": "mean_ms"}
    claim |= {"at_least": 1, "same": ["object_bytes"], "holds_for": holds_for}
    rows = [row("a", n, mean) for n, mean in enumerate(means)]
    assert evaluated([claim], {"sizes": {"entries": rows}})[0]["verdict"] is verdict


def test_what_was_counted_needs_no_interval_and_shares_are_of_what_was_due() -> None:
    claim = {"id": "it", "claim": "", "rows": "drill", "figure": "lost", "exact": True}
    counts: dict[str, Any] = {"attempted": 10, "expired": 1, "not_sent": 1, "ok": 9}
    summary = {"drill": {"lost": 2, "kept": {"bytes": 6, "of": 3}, "reads": counts}}
    for bound, verdict in (({"at_most": 0.5}, DOES_NOT), ({"at_least": 1}, HOLDS)):
        (counted,) = evaluated([claim | bound], summary)
        assert counted["verdict"] is verdict
    computed = {"figure": "kept.bytes", "per": "kept.of", "within": [1.9, 2.1]}
    assert evaluated([claim | computed], summary)[0]["verdict"] is HOLDS
    of_reads = {"id": "it", "claim": "", "rows": "drill", "figure": "reads", "at_least": 0.5}
    (few,) = evaluated([of_reads], summary)
    assert (few["verdict"], few["comparisons"][0]["n"]) == (NOT_DECIDED, [9])
    counts["not_sent"] = 0
    (ten,) = evaluated([of_reads], summary)
    assert (ten["verdict"], ten["comparisons"][0]["value"]) == (HOLDS, 0.9)


def test_what_a_late_network_delayed_is_in_no_count_of_what_a_figure_rests_on() -> None:
    claim = {"id": "it", "claim": "", "rows": "sizes.entries", "figure": "mean_ms", "at_most": 1}
    rows = [row("a", MIB, 0.5, late=3)]
    (found,) = evaluated([claim], {"sizes": {"entries": rows}})
    assert found["comparisons"][0]["n"] == [97]


def test_rows_rest_on_requests_that_were_ok_and_in_time_however_they_count_them() -> None:
    assert rests_on({"n": 100, "ok": 90, "late": 3}) == 87
    assert rests_on({"n": 100, "failed": 10, "unexplained": 4, "late": 3}) == 87
    assert rests_on({"n": 87, "clusters": 5}) == 87


def test_without_all_of_its_samples_nothing_is_decided() -> None:
    claim = {"id": "it", "claim": "", "rows": "drill", "figure": "lost", "exact": True}
    found = claims_block(
        [claim | {"at_least": 1}], {"drill": {"lost": 2}}, Titles(), "the samples are cut"
    )
    assert found is not None
    assert [each["verdict"] for each in found.to_json()["claims"]] == [NOT_DECIDED]


def test_what_cannot_be_tested_says_why() -> None:
    claim = {"id": "best", "claim": "it is the best", "cannot_be_tested": "best at what?"}
    (found,) = evaluated([claim], {})
    assert (found["verdict"], found["why"]) == (Verdict.CANNOT_BE_TESTED, "best at what?")
    assert table_of([found], Titles(), "").rows[0][2:] == (
        *("cannot be tested here", "–", "–", "best at what?", "–"),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"cannot_be_tested": "why", "at_least": 1},
        {"cannot_be_tested": None, "rows": "drill", "figure": "lost"},
        {"cannot_be_tested": None, "rows": "drill", "figure": "x", "at_least": 1, "at_most": 2},
        {"cannot_be_tested": None, "at_least": 1},
    ],
)
def test_a_claim_has_one_bound_or_a_reason_for_none(wrong: dict[str, Any]) -> None:
    right = {"id": "best", "claim": "it is the best", "cannot_be_tested": "best at what?"}
    PublishedClaim.model_validate(right)
    with pytest.raises(ValueError, match=r"no bound|one bound"):
        PublishedClaim.model_validate(right | wrong)


def test_a_matrix_has_a_verdict_on_each_claim_of_its_manifest(tmp_path: Path) -> None:
    slowness = {1: 1.0, 4: 2.0}

    def point(directory: Path, series: tuple[str, str], at: Any) -> None:
        write_load(directory, series=series, duration_s=6.0, slowness=slowness[at["nodes"]])

    claim = {"id": "half", "claim": "four nodes do half", "rows": "load.systems.operations"}
    claim |= {"where": {"nodes": 4}, "over": {"nodes": 1}, "same": ["operation"]}
    claim |= {"figure": "operations_per_s", "within": [0.35, 0.65], "source": "a test"}
    study = {"name": "mixed-load", "load": {"workers": 16}}
    write_sweep(
        tmp_path,
        {"nodes": [1, 4]},
        study=study,
        systems=(MINIO,),
        write_point=point,
        manifest={"claims": [claim, claim | {"where": {"system": GARAGE[0]}}]},
    )
    block = blocks_of(read_matrix(tmp_path))["claims"]
    held, absent = json.loads(json.dumps(block.to_json(), allow_nan=False))["claims"]
    assert (held["verdict"], held["bound"]) == ("holds", "within 0.35 to 0.65")
    assert [each["where"]["operation"] for each in held["comparisons"]] == [
        "GetObject",
        "PutObject",
    ]
    assert (absent["verdict"], absent["comparisons"]) == ("not decided", [])
    (verdicts,) = block.grids()
    assert [row[2] for row in verdicts.rows] == ["holds"]
    assert "Claims on what this run did not measure: 1." in verdicts.notes


def test_each_section_of_the_page_of_publications_has_claims_that_are_data() -> None:
    page = (CHECKOUT / "docs" / "results" / "publications" / "README.md").read_text("utf-8")
    sections = dict(re.findall(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)", page))
    titles = [title for title, text in sections.items() if "\nVerdicts:\n" in text]
    assert sorted(titles) == sorted(made.title for made in publications())
    verdicts = Counter(row.split(" | ")[2] for row in re.findall(r"(?m)^\| [^-].*", page))
    del verdicts["verdict"]
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Verdict)
    assert f"**{verdicts.total()} verdicts: {counts}.**" in page
