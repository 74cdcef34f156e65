"""A drill's bundle is read, judged and reported, also when the drill was killed at any moment."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drill_bundles import Fault, Trouble, stalled, write_drill
from rich.console import Console

from wanlat.analysis.figures.drill.matrix import matrix_of, run_of
from wanlat.analysis.figures.drill.read import Drill, read_drill
from wanlat.analysis.report.drill import DrillReport
from wanlat.analysis.summary import print_summary, summarize
from wanlat.bundle.documents import Titles
from wanlat.bundle.errors import BundleError
from wanlat.bundle.run import read_run

pytestmark = pytest.mark.usefixtures("few_resamples")

SHORT = (4.0, 6.0, 5.0)
FILES = ("samples", "events", "ledger", "verification")


def drill_of(directory: Path, **settings: Any) -> Drill:
    return read_drill(write_drill(directory / "b", **{"phases_s": SHORT, **settings}))


def test_figures_are_numpys_and_shares_are_of_what_was_due(tmp_path: Path) -> None:
    troubles = [stalled(2.0, 5.0), Trouble("down", 8, 9)]
    drill = drill_of(tmp_path, troubles=troubles, deadline_ms=1000.0)
    rows = read_run(tmp_path / "b").samples
    figures_of = {
        (phase["name"], operation): phase[f"{operation}s"]
        for phase in drill["phases"]
        for operation in ("read", "write")
    }
    assert len(figures_of) == 6
    for whose, of in rows.groupby(["phase", "operation"], observed=True):
        if (figures := figures_of.get(whose)) is None:
            continue
        sent, ok = int(of["start_ns"].notna().sum()), of[of["outcome"] == "ok"]
        assert figures["attempted"] == len(of) == sent + figures["expired"] > 0
        assert figures["ok"] == len(ok)
        assert figures["availability"] == pytest.approx(len(ok) / len(of), abs=1e-6)
        from_start = ok["total_ns"].astype(float).to_numpy() / 1e6
        waited = (ok["start_ns"] - ok["due_ns"]).astype(float).to_numpy() / 1e6
        for found, values in ((figures["from_start"], from_start), (figures, from_start + waited)):
            expected = [*np.percentile(values, [50, 99]), values.max()]
            told = [found[f"{name}_ms"] for name in ("p50", "p99", "max")]
            assert told == pytest.approx(expected, abs=1e-6)
        alike = [each for each in drill["endpoints"] if (each["phase"], each["operation"]) == whose]
        assert sum(each["sent"] for each in alike) == sent
    assert drill["phases"][1]["reads"]["expired"] > 0
    assert [phase["end_s"] for phase in drill["phases"]] == [4.0, 10.0, 15.0]


@pytest.mark.parametrize("kind", ["ours", "stored"])
def test_what_this_machine_could_not_send_is_in_no_share_and_no_outage(
    tmp_path: Path, kind: str
) -> None:
    claim = {"of": "reads", "at_least": "80%"}
    claims = [{"id": "it", "claim": "c", "source": "s", "availability": claim}]

    def drill(name: str, seconds: float) -> Drill:
        trouble = Trouble(kind, 21.0, 21.0 + seconds, clients=["survivor"], operations=["read"])
        phases_s = (20.0, 25.0, 25.0)
        return drill_of(tmp_path / name, phases_s=phases_s, troubles=[trouble], claims=claims)

    few = drill("few", 0.5)
    during = few["phases"][1]["reads"]
    assert during["not_sent"] == few["not_sent"] == 2
    assert (during["availability"], during["fail"], during["expired"]) == (1.0, 0, 0)
    assert (few["outages"], few["recovery_s"], few["passed"]) == ([], 0.0, True)
    assert few["claims"][0]["verdict"] == "holds"
    many = drill("many", 5.0)
    assert many["phases"][1]["reads"]["availability"] == 1.0
    assert not many["passed"] and many["claims"][0]["verdict"] == "not decided"
    assert any("did not become ready" in each for each in many["failures"])


def test_what_happened_is_in_the_drill_and_its_notes(tmp_path: Path) -> None:
    faults = [
        Fault("crash-loop", "n2", 4.2, 8.0, "every 1 s", ("n2",), occurrences_s=(5.0, 6.0)),
        Fault("partition", "n1, n2 | n3, n4", 5.0, None, directions=("dc1 → dc3",)),
    ]
    off = {"requested_rtt_ms": 10.0, "rtt_ms": {"p50": 14.2}, "verdict": "fail"}
    events = [(5.5, "died", "n4", "exit code 1"), (12.0, "recalibrated", "n1->n2", off)]
    drill = drill_of(tmp_path, faults=faults, extra_events=events, troubles=[Trouble("down", 1, 2)])
    loop, cut = drill["faults"]
    assert (loop["begin_s"], loop["end_s"], loop["nodes"]) == (4.2, 8.0, ["n2"])
    assert loop["occurrences"] == [5.0, 6.0]
    assert (cut["end_s"], cut["directions"]) == (None, ["dc1 → dc3"])
    assert [(mark["node"], mark["at_s"]) for mark in drill["deaths"]] == [("n4", 5.5)]
    assert not drill["passed"] and drill["recovery_after_heal_s"] is None
    notes = "\n".join(DrillReport(drill).notes)
    for each in (
        "Not healed",
        "partition",
        "n4 at 5.5 s",
        "n1->n2",
        "Not everything was well before",
    ):
        assert each in notes, each


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, ""),
        # What was in flight as the fault began is its doing.
        ({"interval_ms": 65.0, "troubles": [Trouble("down", 4, 5)]}, ""),
        ({"spoil": {"lost": 1}}, "Durability is fail: 1 lost"),
        ({"rounds": ("healed",)}, "Durability is unknown"),
        ({"manifest": {"status": "failed", "reason": "no luck."}}, "The drill failed: no luck."),
        ({"manifest": {"status": "interrupted"}}, "The drill was interrupted."),
        ({"manifest": {"failures": ["The link is off."]}}, "The link is off."),
        ({"troubles": [Trouble("down", 5, 6, error="checksum mismatch")]}, "with other bytes"),
    ],
)
def test_what_does_not_hold_is_a_reason(tmp_path: Path, settings: Any, why: str) -> None:
    drill = drill_of(tmp_path, **settings)
    assert drill["passed"] == (not why)
    assert any(why in failure for failure in drill["failures"] or [""]), drill["failures"]
    assert "Not everything was well" not in "\n".join(DrillReport(drill).notes)


def test_with_too_few_answers_before_only_failures_are_outages(tmp_path: Path) -> None:
    drill = drill_of(tmp_path, phases_s=(1.5, 6, 3), troubles=[stalled(2.0, 2.0)], objects=3)
    assert {figures["limit_ms"] for _, _, figures in drill.clients} == {None}
    assert drill["longest_outage_s"] == 0.0
    assert any("Too few answers" in note for note in DrillReport(drill).notes)


def test_a_drills_figures_are_of_the_client_that_fared_worst(tmp_path: Path) -> None:
    scene: Any = {"faults": [Fault("stop", "n2", 5.0, 8.0)], "latency_ms": (5.0, 20.0)}
    hit = stalled(3.0, 5.0, clients=["victim"])
    drill = drill_of(tmp_path, phases_s=(4, 10, 6), interval_ms=100, troubles=[hit], **scene)
    assert drill["longest_outage_s"] == pytest.approx(3.0, abs=0.1)
    assert drill["recovery_s"] == pytest.approx(3.0, abs=0.1)
    assert drill["clients"][0]["reads"]["longest_outage_s"] == 0.0


@pytest.mark.parametrize("moment_s", [-20.0, 0.01, 2.0, 4.05, 10.5, 20.0])
def test_a_drill_killed_at_any_moment_is_reported_and_says_how_far_it_got(
    tmp_path: Path, moment_s: float
) -> None:
    drill = drill_of(tmp_path, killed_at_s=moment_s, troubles=[stalled(2.0, 4.0)])
    assert not drill["passed"] and drill["durability"]["verdict"] == "unknown"
    begun = [phase["name"] for phase in drill["phases"] if phase["begin_s"] is not None]
    assert begun == ["before", "during", "after"][: sum(moment_s >= at for at in (0, 4, 10))]
    assert [each["complete"] for each in drill["phases"]] == [moment_s >= s for s in (4, 10, 15)]
    for phase in drill["phases"]:
        assert phase["end_s"] is None or phase["end_s"] <= max(moment_s, 0.0) + 1e-6
    summary = summarize(drill.bundle)
    assert "was killed" in summary.notes[0]
    print_summary(summary, Console(file=io.StringIO(), width=100), verbose=False)
    assert json.loads(summary.to_text())["drill"]["status"] == "running"


@pytest.mark.parametrize("name", FILES)
def test_a_file_may_be_missing_but_not_damaged(tmp_path: Path, name: str) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT, as_lines=True)
    file = path / f"{name}.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[1][:10] + "\n", *lines[2:]]))
    with pytest.raises(BundleError, match="damaged"):
        read_drill(path)
    file.unlink()
    if name == "samples":  # of a drill that is complete: no figure is better than zeros
        with pytest.raises(BundleError, match="has no samples"):
            read_drill(path)
        return
    drill = read_drill(path)
    assert not drill["passed"] and any(name in each for each in drill["lacking"])
    json.dumps(drill.document, allow_nan=False)


LACKING: dict[str, tuple[str, Callable[[list[str]], list[str]]]] = {
    "no event at all": ("events", lambda _: []),
    "events end in the middle": ("events", lambda lines: lines[: len(lines) // 2]),
    "no event of the fault": ("events", lambda lines: [x for x in lines if '"inject"' not in x]),
    "the last requests": ("samples", lambda lines: lines[:-50]),
    "every request of a client": ("samples", lambda lines: [x for x in lines if "victim" not in x]),
    "a line cut in two": ("samples", lambda lines: [*lines, lines[-1][:30]]),
    "no write in the ledger": ("ledger", lambda _: []),
    "the first writes in the ledger": ("ledger", lambda lines: lines[20:]),
    "no answer of the verification": ("verification", lambda _: []),
    "the last round": ("verification", lambda lines: lines[: len(lines) // 2]),
}


@pytest.mark.parametrize("case", LACKING)
def test_without_its_evidence_no_drill_has_passed_and_no_claim_holds(
    tmp_path: Path, case: str
) -> None:
    claims = [{"id": "it", "claim": "c", "source": "s", "durability": "intact"}]
    drill = {"faults": [{"kill": "victim"}]}
    made = {"phases_s": SHORT, "as_lines": True, "claims": claims, "drill": drill}
    whole = read_drill(write_drill(tmp_path / "whole", **made))
    assert whole["passed"] and whole["claims"][0]["verdict"] == "holds"
    path = write_drill(tmp_path / "b", **made)
    name, left = LACKING[case]
    file = path / f"{name}.jsonl"
    file.write_text("".join(left(file.read_text().splitlines(keepends=True))))
    drill = read_drill(path)
    assert not drill["passed"] and drill["failures"]
    assert drill["claims"][0]["verdict"] == "not decided"
    assert matrix_of([run_of(path, drill.document)], Titles()).cells  # which can be shown, too


def test_nothing_but_a_manifest_is_a_bundle_too_and_a_study_is_no_drill(
    tmp_path: Path, make_bundle: Any
) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT, killed_at_s=-20.0)
    for name in FILES:
        (path / f"{name}.jsonl").unlink(missing_ok=True)
    drill = read_drill(path)
    assert (drill.origin_ns, drill.clients, drill["faults"]) == (None, [], [])
    assert (drill["longest_outage_s"], drill["recovery_s"]) == (None, None)
    with pytest.raises(BundleError, match="no bundle of a drill"):
        read_drill(make_bundle(n=10))


# --- claims ------------------------------------------------------------------------------------

READS, WRITES = {"of": "reads", "client": "victim"}, {"of": "writes"}
Claimed = tuple[Any, str, str]
"""A figure with its bound, the verdict on it, and what its evidence says."""
SCENES: list[tuple[dict[str, Any], list[Claimed]]] = [
    (
        {},
        [
            (READS | {"at_least": "90%"}, "holds", "80 of 80 reads from n2 (victim) in `during`"),
            (READS | {"at_most": "10%"}, "does not hold", ""),
            # 80 requests, all ok: the interval begins at 95.4 %.
            (READS | {"at_least": "99%"}, "not decided", "(100.0 %, 95.4–100.0 %)"),
            ("intact", "holds", ""),
            ("broken", "does not hold", ""),
        ],
    ),
    (
        {"troubles": [Trouble("down", 5, 25)]},
        [
            (READS | {"at_least": "90%"}, "does not hold", "0 of 80"),
            (READS | {"at_most": "10%"}, "holds", ""),
            (READS | {"at_least": "90%", "to": "500ms"}, "not decided", "too few to decide"),
        ],
    ),
    (
        {"troubles": [Trouble("down", 5, 25, part=0.5)]},
        [(READS | {"at_least": 0.5}, "not decided", "")],
    ),
    # 37 of 80, up to 57 %: clear of a bound where that is all that is claimed, and not among three.
    (
        {"troubles": [Trouble("down", 5, 25, part=0.5)]},
        [(READS | {"at_most": 0.58}, "holds", "37 of 80")],
    ),
    (
        {"troubles": [Trouble("down", 5, 25, part=0.5)]},
        [(READS | {"at_most": 0.58}, "not decided", "37 of 80")] * 3,
    ),
    # Of 60 that were due only three were sent: each waited until its deadline. The store's doing.
    (
        {"troubles": [Trouble("silent", 5, 25)]},
        [(READS | {"at_most": "90%", "to": "15s"}, "holds", "0 of 60")],
    ),
    (
        {"troubles": [Trouble("down", 5, 10)]},
        [
            (WRITES | {"at_least": "90%"}, "does not hold", "from everywhere"),
            (WRITES | {"at_least": "90%", "from": "6s"}, "holds", "from 6 s of"),
            (WRITES | {"at_most": "20%", "to": "4s"}, "holds", "0 of 32 writes"),
            (WRITES | {"at_least": "80%", "phase": "after"}, "holds", "`after`"),
        ],
    ),
    (
        {"killed_at_s": 15.0},
        [
            (READS | {"at_least": "80%"}, "not decided", "cut short"),
            (READS | {"at_least": "80%", "to": "8s"}, "holds", ""),
            (READS | {"at_least": "80%", "phase": "after"}, "not decided", "not reached"),
        ],
    ),
    ({"spoil": {"lost": 1}}, [("intact", "does not hold", ""), ("broken", "holds", "")]),
    ({"rounds": ("healed",)}, [("intact", "not decided", ""), ("broken", "not decided", "")]),
]


@pytest.mark.parametrize(("scene", "claims"), SCENES)
def test_a_claim_needs_all_of_the_interval_and_fails_the_drill_only_if_it_does_not_hold(
    tmp_path: Path, scene: dict[str, Any], claims: list[Claimed]
) -> None:
    made: list[Any] = [
        {"id": f"c{n}", "claim": f"claim {n}", "source": "somewhere"}
        | ({"durability": figure} if isinstance(figure, str) else {"availability": figure})
        for n, (figure, _, _) in enumerate(claims)
    ]
    drill = drill_of(tmp_path, phases_s=(5, 20, 5), objects=5, claims=made, **scene)
    failures = "\n".join(drill["failures"])
    for told, (figure, verdict, evidence) in zip(drill["claims"], claims, strict=True):
        assert told["verdict"] == verdict, (figure, told["evidence"])
        assert evidence in told["evidence"]
        assert (told["claim"] in failures) == (verdict == "does not hold")
