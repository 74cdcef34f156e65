"""What was lost, found from the ledger and from what each node answered, and never guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from drill_bundles import Trouble, write_drill
from hypothesis import given, settings
from hypothesis import strategies as st

from wanlat.analysis.figures.drill.read import read_drill
from wanlat.analysis.figures.drill.verdicts import (
    EITHER,
    MAYBE,
    NEVER,
    PRESENT,
    REMOVED,
    VERDICTS,
    WRONG,
    Key,
    Round,
    durability_of,
    read_ledger,
    read_verification,
)
from wanlat.bundle.documents import MISSED
from wanlat.bundle.errors import BundleError

NODES = ("n1", "n2", "n3")
ANSWERS = ("yes", "no", "wrong", "unread")
BOTH = ("healed", "restarted")


@pytest.mark.parametrize(
    ("puts", "removes", "expected"),
    [
        ("ok", "", PRESENT),
        ("fail", "", NEVER),
        ("unknown", "", MAYBE),
        ("unknown ok", "", PRESENT),  # tried again by the filling
        ("fail unknown", "", MAYBE),
        ("ok", "ok", REMOVED),
        ("ok", "fail", PRESENT),  # a remove that failed was certainly not executed
        ("ok", "unknown", EITHER),
        ("ok", "unknown ok", REMOVED),
        ("unknown ok", "ok", EITHER),  # the put may be executed after the remove
    ],
)
def test_what_must_be_at_a_key_follows_from_what_was_acknowledged(
    puts: str, removes: str, expected: str
) -> None:
    assert Key("v", puts.split(), removes.split()).expected == expected


NONSENSE: list[tuple[str, Mapping[str, Any]]] = [
    ("ledger", {"id": 1, "state": "ok"}),  # an outcome of what was never begun
    ("ledger", {"state": "invoked", "id": 1, "op": "copy", "key": "k"}),
    ("ledger", {}),
    ("verification", {"round": "third"}),
    ("verification", {"round": "healed", "key": "k"}),
]


@pytest.mark.parametrize(("name", "line"), NONSENSE)
def test_a_file_that_says_nonsense_is_refused(
    tmp_path: Path, name: str, line: Mapping[str, Any]
) -> None:
    written(tmp_path, name, [line])
    with pytest.raises(BundleError, match=rf"{name}\.jsonl is damaged"):
        (read_ledger if name == "ledger" else read_verification)(tmp_path)


def oracle(expected: str, answers: Sequence[str]) -> str:
    """The contract's table, read literally and in another order than the code has it."""
    yes, no, unread = (answers.count(what) for what in ("yes", "no", "unread"))
    if answers.count("wrong"):
        return "corrupt"
    if yes and (expected in (REMOVED, NEVER) or (expected == PRESENT and no)):
        return {REMOVED: "resurrected", NEVER: "unexpected", PRESENT: "stale"}[expected]
    if unread or not answers:
        return "unread"
    if expected == PRESENT:
        return "lost" if no else "fine"
    return "recovered" if expected == MAYBE and yes else "fine"


outcomes = st.sampled_from(["ok", "fail", "unknown"])
answers = st.lists(st.sampled_from([*ANSWERS, None]), min_size=3, max_size=3)
writes = st.tuples(st.lists(outcomes, min_size=1, max_size=2), st.lists(outcomes, max_size=2))
keys = st.lists(st.tuples(writes, answers, answers), max_size=8)


@settings(max_examples=100)
@given(keys, st.sets(st.sampled_from(BOTH)))
def test_durability_agrees_with_brute_force(drawn: Any, present: set[str]) -> None:
    rounds = {name: Round(NODES) for name in sorted(present)}
    ledger = {f"k{n}": Key("v", *of) for n, (of, *_) in enumerate(drawn)}
    worst = dict.fromkeys(ledger, "fine")
    for name, (_, *of_rounds) in zip(ledger, drawn, strict=True):
        for at, told in zip(BOTH, of_rounds, strict=True):
            if at in present:
                known = {n: a for n, a in zip(NODES, told, strict=True) if a is not None}
                rounds[at].answers |= {name: known} if known else {}
                verdict = oracle(ledger[name].expected, [each or "unread" for each in told])
                worst[name] = min(verdict, worst[name], key=VERDICTS.index)
    found = durability_of(ledger, rounds, 0)
    for verdict in VERDICTS:
        assert found[verdict] == (list(worst.values()).count(verdict) if present else 0)
    assert (found["verdict"] == "fail") == any(found[verdict] for verdict in WRONG)
    if found["verdict"] == "pass":
        assert present == set(BOTH) and found["unread"] == 0
        assert found["acknowledged"] == sum("ok" in puts for (puts, _), *_ in drawn) > 0
        assert all(each is not None for _, *both in drawn for one in both for each in one)


def durability(directory: Path, **scene: Any) -> Any:
    return read_drill(write_drill(directory, phases_s=(3, 4, 3), **scene))["durability"]


@pytest.mark.parametrize("verdict", [*WRONG, "unread", "recovered"])
def test_each_verdict_is_reported_by_its_name(tmp_path: Path, verdict: str) -> None:
    troubles = [Trouble("down", 4, 5, ["victim"]), Trouble("reset", 5, 5.3)]
    told = durability(tmp_path / "b", troubles=troubles, spoil={verdict: 1}, interval_ms=100)
    assert {name: told[name] for name in VERDICTS[:-1] if told[name]} == {verdict: 1}
    expected = {"unread": "unknown", "recovered": "pass"}.get(verdict, "fail")
    assert told["verdict"] == expected, told["why"]
    (example,) = told["examples"][verdict]
    assert example["round"] == "healed" and set(example["answers"]) == {"n1", "n2", "n3", "n4"}


@pytest.mark.parametrize("part", [0.1, 0.7, 0.999])
def test_a_verification_cut_short_anywhere_is_unknown(tmp_path: Path, part: float) -> None:
    path = write_drill(tmp_path / "b", phases_s=(3, 4, 3))
    whole = (path / "verification.jsonl").read_bytes()
    (path / "verification.jsonl").write_bytes(whole[: int(len(whole) * part)])
    told = read_drill(path)["durability"]
    assert told["verdict"] == "unknown" and not told["rounds"][1]["complete"]
    assert not any(told[verdict] for verdict in WRONG)


@pytest.mark.parametrize(
    ("said", "counts", "late"),
    [
        ("n1 wrong, n1 yes, n2 yes, n3 yes", {"corrupt": 1}, 0),  # once served wrong is served
        ("n1 no, n2 no, n3 no, n1 yes, n2 yes, n3 yes", {"fine": 1}, 1),
        ("n1 no, n2 no", {"unread": 1}, 0),  # n3 was never asked
    ],
)
def test_what_a_node_says_later_counts(
    tmp_path: Path, said: str, counts: Mapping[str, int], late: int
) -> None:
    lines: list[dict[str, Any]] = [{"round": "healed", "nodes": list(NODES)}]
    for answer in said.split(", "):
        node, found = answer.split()
        lines.append({"round": "healed", "node": node, "key": "k", "found": found})
    rounds = read_verification(written(tmp_path, "verification", lines))
    told = durability_of({"k": Key("v", ["ok"])}, rounds, 0)
    assert {name: told[name] for name in VERDICTS if told[name]} == counts
    assert told["late"] == late


def test_a_removal_that_does_not_find_what_was_acknowledged_keeps_a_drill_from_passing(
    tmp_path: Path,
) -> None:
    lines = [
        {"state": "invoked", "id": 0, "op": "put", "key": "k"},
        {"state": "ok", "id": 0, "error": None},
        {"state": "invoked", "id": 1, "op": "remove", "key": "k"},
        {"state": "unknown", "id": 1, "error": f"{MISSED}: http 404 NoSuchKey"},
    ]
    everywhere = Round(NODES, {"k": dict.fromkeys(NODES, "no")})
    for error, verdict in (("timeout (first byte)", "pass"), (lines[3]["error"], "unknown")):
        lines[3]["error"] = error
        keys = read_ledger(written(tmp_path, "ledger", lines))
        told = durability_of(keys, dict.fromkeys(BOTH, everywhere), 0)
        assert (told["verdict"], told["fine"]) == (verdict, 1)
        assert ("1 removal did not find" in told["why"]) == (verdict == "unknown")
        assert told.get("missed_by_removals", 0) == (verdict == "unknown")


def test_without_a_write_or_with_one_that_the_ledger_lacks_nothing_passes(tmp_path: Path) -> None:
    rounds = {name: Round(NODES) for name in BOTH}
    assert durability_of({}, rounds, 0)["verdict"] == "unknown"
    path = write_drill(tmp_path / "b", phases_s=(3, 4, 3), objects=1)
    lines = (path / "ledger.jsonl").read_text().splitlines(keepends=True)
    gone = max(json.loads(line)["id"] for line in lines)
    kept = [line for line in lines if json.loads(line)["id"] != gone]
    (path / "ledger.jsonl").write_text("".join(kept))
    drill = read_drill(path)
    assert drill["durability"]["unledgered"] == 1 and not drill["passed"]


def written(directory: Path, name: str, lines: Sequence[Mapping[str, Any]]) -> Path:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (directory / f"{name}.jsonl").write_text(text)
    return directory
