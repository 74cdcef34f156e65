"""A drill's bundle is read, judged and reported, also when the drill was killed at any moment."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from drill_bundles import CLIENTS, ORIGIN_NS, Fault, Trouble, stalled, write_drill
from rich.console import Console

from wanlat.analysis.bundle import read_bundle
from wanlat.analysis.figures.drill.document import drill_document
from wanlat.analysis.figures.drill.model import STAGES, Claim, Drill
from wanlat.analysis.figures.drill.read import read_drill
from wanlat.analysis.report import report
from wanlat.analysis.report.drill import latency, notes_on, percent
from wanlat.analysis.summary import print_summary, summarize
from wanlat.bundle.errors import BundleError

pytestmark = pytest.mark.usefixtures("few_resamples")

SHORT = (4.0, 6.0, 5.0)
DOWN = Trouble("down", 5, 25)
FILES = ("samples", "events", "ledger", "verification")


def drill_of(directory: Path, **settings: Any) -> Drill:
    return read_drill(write_drill(directory / "b", **{"phases_s": SHORT, **settings}))


def test_figures_are_numpys_and_shares_are_of_what_was_sent(tmp_path: Path) -> None:
    import numpy as np

    troubles = [stalled(2.0, 5.0), Trouble("down", 8, 9)]
    drill = drill_of(tmp_path, troubles=troubles, deadline_ms=1000.0)
    rows = read_bundle(tmp_path / "b").samples
    for phase in drill.phases:
        for operation in ("read", "write"):
            of = rows[(rows["phase"] == phase.name) & (rows["operation"] == operation)]
            figures = phase.reads if operation == "read" else phase.writes
            sent = int(of["start_ns"].notna().sum())
            assert figures.attempted == len(of) == sent + figures.not_sent > 0
            for outcome in ("ok", "fail", "unknown"):
                assert getattr(figures, outcome) == (of["outcome"] == outcome).sum()
            assert figures.availability == figures.ok / sent
            ok = of[of["outcome"] == "ok"]
            from_start = ok["total_ns"].astype(float).to_numpy() / 1e6
            waited = (ok["start_ns"] - ok["due_ns"]).astype(float).to_numpy() / 1e6
            for told, values in ((figures.from_start, from_start), (figures, from_start + waited)):
                expected = [*np.percentile(values, [50, 99]), values.max()]
                told_ms = [told.p50_ms, told.p99_ms, told.max_ms]
                assert told_ms == pytest.approx(expected, abs=1e-6)
            of_clients = [each for each in drill.clients if each.operation == operation]
            of_endpoints = [
                each.figures
                for each in drill.endpoints
                if (each.phase, each.operation) == (phase.name, operation)
            ]
            assert sum(each.phases[phase.name].sent for each in of_clients) == sent
            assert sum(each.sent for each in of_endpoints) == sent
    assert drill.phases[1].reads.not_sent > 0
    assert drill.origin_ns == ORIGIN_NS and drill.requests["due_s"].is_monotonic_increasing
    assert [phase.end_s for phase in drill.phases] == [4.0, 10.0, 15.0]


def test_what_happened_is_in_the_drill_and_its_notes(tmp_path: Path) -> None:
    faults = [
        Fault("crash-loop", "n2", 4.2, 8.0, "every 1 s", ("n2",), occurrences_s=(5.0, 6.0)),
        Fault("partition", "n1, n2 | n3, n4", 5.0, None, directions=("dc1 → dc3",)),
    ]
    off = {"requested_rtt_ms": 10.0, "rtt_ms": {"p50": 14.2}, "verdict": "fail"}
    events = [(5.5, "died", "n4", "exit code 1"), (12.0, "recalibrated", "n1->n2", off)]
    drill = drill_of(tmp_path, faults=faults, extra_events=events, troubles=[Trouble("down", 1, 2)])
    loop, cut = drill.faults
    assert (loop.begin_s, loop.end_s, loop.nodes) == (4.2, 8.0, ("n2",))
    assert (loop.label, loop.occurrences) == ("crash-loop n2, every 1 s", (5.0, 6.0))
    assert (cut.end_s, cut.directions) == (None, ("dc1 → dc3",))
    assert [(mark.node, mark.at_s) for mark in drill.deaths] == [("n4", 5.5)]
    (again,) = drill.recalibrations
    assert (again.passed, again.measured_rtt_ms) == (False, 14.2)
    assert not drill.passed and drill.recovery_after_heal_s is None
    notes = "\n".join(notes_on(drill))
    said = ("Not healed", "partition", "n4 at 5.5 s", "n1->n2", "Not everything was well before")
    for each in said:
        assert each in notes, each


@pytest.mark.parametrize(
    ("settings", "said", "unsaid"),
    [
        # Writes take longer than the interval: their queue is the client's.
        (
            {"interval_ms": 50.0},
            "waited in line although nothing was broken yet (",
            "survivor/read",
        ),
        # What was in flight as the fault began is its doing.
        ({"interval_ms": 65.0, "troubles": [Trouble("down", 4, 5)]}, "", "Not everything was well"),
        ({"phases_s": (1.5, 6, 3)}, "Too few answers before the fault", "waited in line"),
        ({"rounds": ["healed"]}, "but not all of them after a full restart", "none of them"),
        ({"killed_at_s": -4.0}, "Nothing was measured", "No outage"),
    ],
)
def test_a_note_is_said_of_what_it_is_true_of(
    tmp_path: Path, settings: Any, said: str, unsaid: str
) -> None:
    notes = "\n".join(notes_on(drill_of(tmp_path, **settings)))
    assert said in notes
    assert unsaid not in notes


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, ""),
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
    assert drill.passed == (not why)
    assert any(why in failure for failure in drill.failures or [""]), drill.failures


# --- killed at any moment ----------------------------------------------------------------------


@pytest.mark.parametrize("moment_s", [-20.0, -4.0, -1.0, 0.01, 2.0, 4.05, 9.0, 10.5, 15.5, 20.0])
def test_a_drill_killed_at_any_moment_is_reported_and_says_how_far_it_got(
    tmp_path: Path, moment_s: float
) -> None:
    drill = drill_of(tmp_path, killed_at_s=moment_s, troubles=[stalled(2.0, 4.0)])
    assert drill.status == "running" and drill.reached in (None, *STAGES)
    assert not drill.passed and drill.durability.verdict == "unknown"
    begun = [phase.name for phase in drill.phases if phase.begin_s is not None]
    assert begun == ["before", "during", "after"][: sum(moment_s >= at for at in (0, 4, 10))]
    assert [each.complete for each in drill.phases] == [moment_s >= end for end in (4, 10, 15)]
    for phase in drill.phases:
        assert phase.end_s is None or phase.end_s <= max(moment_s, 0.0) + 1e-6
    summary = summarize(drill.bundle)
    assert "was killed" in summary.notes[0]
    console = Console(file=io.StringIO(), width=100)
    print_summary(summary, console, verbose=False)
    assert json.loads(summary.to_text())["drill"]["reached"] == drill.reached


@pytest.mark.parametrize("name", FILES)
def test_a_file_may_be_missing_but_not_damaged(tmp_path: Path, name: str) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT, as_lines=True)
    file = path / f"{name}.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], lines[1][:10] + "\n", *lines[2:]]))
    with pytest.raises(BundleError, match="damaged"):
        read_drill(path)
    file.unlink()
    drill = read_drill(path)
    assert not drill.passed or name == "events"
    json.dumps(drill_document(drill), allow_nan=False)


def test_nothing_but_a_manifest_is_a_bundle_too(tmp_path: Path) -> None:
    path = write_drill(tmp_path / "b", phases_s=SHORT, killed_at_s=-20.0)
    for name in FILES:
        (path / f"{name}.jsonl").unlink(missing_ok=True)
    drill = read_drill(path)
    assert (drill.origin_ns, drill.end_s, drill.clients, drill.faults) == (None, None, (), ())
    document = drill_document(drill)
    assert (document["longest_outage_s"], document["recovery_s"]) == (None, None)


def test_lines_and_table_give_the_same_bytes(tmp_path: Path) -> None:
    scene: dict[str, Any] = {"phases_s": SHORT, "troubles": [stalled(2.0, 5.0)]}
    paths = [write_drill(tmp_path / str(n), as_lines=bool(n), **scene) for n in range(2)]
    assert len({summarize(read_bundle(path)).to_text() for path in paths}) == 1


# --- claims ------------------------------------------------------------------------------------


def claim(directory: Path, spec: dict[str, Any], *troubles: Trouble, **settings: Any) -> Claim:
    settings = {"phases_s": (5, 20, 5), "objects": 5} | settings
    figure = spec if "durability" in spec else {"availability": spec}
    mine = {"id": "mine", "claim": "it goes on", "source": "somewhere"} | figure
    (told,) = drill_of(directory, troubles=troubles, claims=[mine], **settings).claims
    return told


READS, WRITES = {"of": "reads", "client": "victim"}, {"of": "writes"}
FIRST_HALF, SILENT = Trouble("down", 5, 10), Trouble("silent", 5, 25)


@pytest.mark.parametrize(
    ("spec", "troubles", "verdict", "evidence"),
    [
        (READS | {"at_least": "90%"}, [], "holds", "80 of 80 reads from n2 (victim) in `during`"),
        (READS | {"at_least": "90%"}, [DOWN], "does not hold", "0 of 80"),
        (READS | {"at_most": "10%"}, [DOWN], "holds", ""),
        (READS | {"at_most": "10%"}, [], "does not hold", ""),
        (READS | {"at_least": 0.5}, [Trouble("down", 5, 25, part=0.5)], "not decided", ""),
        # 80 requests, all ok: the interval begins at 95.4 %.
        (READS | {"at_least": "99%"}, [], "not decided", "(100.0 %, 95.4–100.0 %)"),
        (READS | {"at_least": "10%", "to": "2s"}, [], "not decided", "too few to decide"),
        # Of 60 that were due only three were sent: each waited until its deadline.
        (READS | {"at_most": "90%", "to": "15s"}, [SILENT], "not decided", "never sent: too few"),
        (WRITES | {"at_least": "90%"}, [FIRST_HALF], "does not hold", "from everywhere"),
        (WRITES | {"at_least": "90%", "from": "6s"}, [FIRST_HALF], "holds", "from 6 s of"),
        (WRITES | {"at_most": "20%", "to": "4s"}, [FIRST_HALF], "holds", "0 of 32 writes"),
        (WRITES | {"at_least": "80%", "phase": "after"}, [FIRST_HALF], "holds", "`after`"),
    ],
)
def test_a_claim_of_availability_needs_all_of_the_interval(
    tmp_path: Path, spec: dict[str, Any], troubles: list[Trouble], verdict: str, evidence: str
) -> None:
    told = claim(tmp_path, spec, *troubles)
    assert told.verdict == verdict, told.evidence
    assert evidence in told.evidence


def test_a_phase_that_was_cut_short_decides_only_what_it_covers(tmp_path: Path) -> None:
    spec = {"of": "reads", "at_least": "80%"}
    whole = claim(tmp_path / "a", spec, killed_at_s=15.0)
    assert whole.verdict == "not decided" and "cut short" in whole.evidence
    assert claim(tmp_path / "b", spec | {"to": "8s"}, killed_at_s=15.0).verdict == "holds"
    assert claim(tmp_path / "c", spec, killed_at_s=3.0).verdict == "not decided"


@pytest.mark.parametrize(
    ("claimed", "spoil", "rounds", "verdict"),
    [
        ("intact", {}, ("healed", "restarted"), "holds"),
        ("intact", {"lost": 1}, ("healed", "restarted"), "does not hold"),
        ("intact", {}, ("healed",), "not decided"),
        ("broken", {}, ("healed", "restarted"), "does not hold"),
        ("broken", {"stale": 1}, ("healed", "restarted"), "holds"),
    ],
)
def test_a_claim_of_durability_is_compared_with_the_verdict(
    tmp_path: Path, claimed: str, spoil: dict[str, int], rounds: tuple[str, ...], verdict: str
) -> None:
    told = claim(tmp_path, {"durability": claimed}, spoil=spoil, rounds=rounds)
    assert told.verdict == verdict


def test_only_a_claim_that_does_not_hold_fails_the_drill(tmp_path: Path) -> None:
    for number, (window, passes) in enumerate((({}, False), ({"to": "500ms"}, True))):
        mine = {
            "id": "i",
            "claim": "c",
            "availability": {"of": "reads", "at_least": "90%"} | window,
        }
        scene: dict[str, Any] = {"phases_s": (5, 20, 5), "troubles": [DOWN], "claims": [mine]}
        drill = drill_of(tmp_path / str(number), **scene)
        assert drill.passed == passes, drill.failures


# --- for people --------------------------------------------------------------------------------


def test_a_terminal_shows_what_was_sent_and_every_verdict_within_100_columns(
    tmp_path: Path,
) -> None:
    claims = [
        {
            "id": "reads",
            "claim": "reads go on with one of four nodes lost " * 3,
            "source": "a " * 90,
        }
        | {"availability": {"of": "reads", "client": "survivor", "at_least": "80%"}},
        {"id": "intact", "claim": "nothing is lost", "source": "m", "durability": "intact"},
    ]
    far = {"a-client-with-a-rather-long-name": {"node": "n1", "site": "dc1", "target": "n4"}}
    path = write_drill(
        *[tmp_path / "b"],
        **{"phases_s": (5.0, 8.0, 5.0), "claims": claims, "clients": CLIENTS | far},
        **{"troubles": [Trouble("silent", 5, 13, ["victim"])], "deadline_ms": 1000.0},
        spoil={"lost": 2},
    )
    made = report(path)
    assert "drill-timeline.png" in {each.name for each in made.charts}
    text = io.StringIO()
    print_summary(made.summary, Console(file=text, width=100), verbose=False)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 100 and "…" not in text.getvalue()
    reads = ["during", "victim", "reads", "17", "2", "0", "15", "15", "11.8", "%"]
    assert reads in [line.split()[:10] for line in lines], text.getvalue()
    words = " ".join(text.getvalue().split())
    for said in ("holds", "does not", "2 lost", "reads ok ≥ 80%", "32 of 32"):
        assert said in words, said
    tables = made.tables_path.read_text() if made.tables_path else ""
    assert "never sent" in tables and "does not hold" in tables


def test_a_study_is_no_drill(make_bundle: Any) -> None:
    with pytest.raises(BundleError, match="no bundle of a drill"):
        read_drill(make_bundle(n=10))


def test_figures_are_written_as_people_read_them() -> None:
    shares = (None, 0.0, 1.0, 0.5, 0.9999, 0.0004, 0.9999999)
    assert [percent(share) for share in shares] == [
        *("–", "0 %", "100 %", "50.0 %", "99.99 %", "0.04 %", "> 99.999 %")
    ]
    assert [latency(value) for value in (None, 5.982, 999.0, 1870.0, 16_800.0)] == [
        *("–", "5.98 ms", "999.0 ms", "1.87 s", "16.8 s")
    ]
