"""What was lost, found from the ledger and from what each node answered, and never guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from drill_bundles import Trouble, write_drill
from hypothesis import given, settings
from hypothesis import strategies as st

from wanlat.analysis.figures.drill.durability import (
    EXAMPLES,
    VERDICTS,
    WRONG,
    Expected,
    Key,
    Ledger,
    Round,
    durability_of,
    read_ledger,
    read_verification,
    verdict_of,
)
from wanlat.analysis.figures.drill.read import read_drill
from wanlat.bundle.errors import BundleError

NODES = ("n1", "n2", "n3")
ANSWERS = ("yes", "no", "wrong", "unread")
OUTCOMES = ("ok", "fail", "unknown")


@pytest.mark.parametrize(
    ("puts", "removes", "expected"),
    [
        ("ok", "", Expected.PRESENT),
        ("fail", "", Expected.NEVER),
        ("unknown", "", Expected.MAYBE),
        ("unknown ok", "", Expected.PRESENT),  # tried again by the filling
        ("fail ok", "", Expected.PRESENT),
        ("fail unknown", "", Expected.MAYBE),
        ("ok", "ok", Expected.REMOVED),
        ("ok", "fail", Expected.PRESENT),  # a remove that failed was certainly not executed
        ("ok", "unknown", Expected.EITHER),
        ("ok", "unknown ok", Expected.REMOVED),
        ("unknown", "ok", Expected.EITHER),  # the put may be executed after the remove
        ("unknown ok", "ok", Expected.EITHER),
    ],
)
def test_what_must_be_at_a_key_follows_from_what_was_acknowledged(
    puts: str, removes: str, expected: Expected
) -> None:
    assert Key("k", "v", puts.split(), removes.split()).expected is expected


def test_a_ledger_may_lack_outcomes_and_no_invocations(tmp_path: Path) -> None:
    lines = [
        {"state": "invoked", "id": 1, "op": "put", "key": "a", "client": "v"},
        {"id": 1, "state": "ok"},
        {"state": "invoked", "id": 2, "op": "put", "key": "b", "client": "v"},
        {"state": "invoked", "id": 3, "op": "remove", "key": "a", "client": "v"},
        {"id": 9, "state": "ok"},
    ]
    ledger = read_ledger(written(tmp_path, "ledger", lines))
    assert ledger is not None and ledger.orphans == 1
    assert {name: key.expected for name, key in ledger.keys.items()} == {
        "a": Expected.EITHER,
        "b": Expected.MAYBE,
    }
    assert durability_of(ledger, {}, 0).unledgered == 1


NONSENSE: list[tuple[str, Mapping[str, Any]]] = [
    ("ledger", {"id": 1, "state": "perhaps"}),
    ("ledger", {"state": "invoked", "id": 1, "op": "copy"}),
    ("ledger", {}),
    ("verification", {"round": "third"}),
    ("verification", {"round": "healed", "key": "k"}),
    ("verification", {}),
]


@pytest.mark.parametrize(("name", "line"), NONSENSE)
def test_a_file_that_says_nonsense_is_refused(
    tmp_path: Path, name: str, line: Mapping[str, Any]
) -> None:
    written(tmp_path, name, [line])
    with pytest.raises(BundleError, match=rf"{name}\.jsonl is damaged"):
        (read_ledger if name == "ledger" else read_verification)(tmp_path)


def oracle(expected: Expected, answers: Sequence[str]) -> str:  # noqa: PLR0911
    """The contract's table, read literally and in another order than the code has it."""
    yes, no, unread = (answers.count(what) for what in ("yes", "no", "unread"))
    if answers.count("wrong"):
        return "corrupt"
    if expected is Expected.PRESENT:
        if no and yes:
            return "stale"
        if no and not yes and not unread:
            return "lost"
        return "unread" if unread or not answers else "fine"
    if expected is Expected.REMOVED and yes:
        return "resurrected"
    if expected is Expected.NEVER and yes:
        return "unexpected"
    if unread or not answers:
        return "unread"
    return "recovered" if expected is Expected.MAYBE and yes else "fine"


def test_every_combination_of_answers_has_the_verdict_of_the_table() -> None:
    for expected in Expected:
        for size in range(len(NODES) + 1):
            for answers in product(ANSWERS, repeat=size):
                told = verdict_of(expected, dict(zip(NODES, answers, strict=False)))
                assert told == oracle(expected, answers), (expected, answers)
                assert "unread" not in answers or told not in ("fine", "recovered", "lost")


answers = st.lists(st.sampled_from([*ANSWERS, None]), min_size=3, max_size=3)
keys = st.lists(
    st.tuples(
        st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=2),
        st.lists(st.sampled_from(OUTCOMES), max_size=2),
        st.tuples(answers, answers),
    ),
    max_size=8,
)


@settings(max_examples=100, deadline=None)
@given(keys, st.sets(st.sampled_from(["healed", "restarted"])))
def test_durability_agrees_with_brute_force(drawn: Any, present: set[str]) -> None:
    rounds = {name: Round(NODES, 1) for name in sorted(present)}
    ledger = {
        f"k{n}": Key(f"k{n}", "v", puts, removes) for n, (puts, removes, _) in enumerate(drawn)
    }
    worst = dict.fromkeys(ledger, "fine")
    for name, (_, _, of_rounds) in zip(ledger, drawn, strict=True):
        for at, told in zip(("healed", "restarted"), of_rounds, strict=True):
            if at in present:
                known = {n: a for n, a in zip(NODES, told, strict=True) if a is not None}
                rounds[at].answers |= {name: known} if known else {}
                verdict = oracle(ledger[name].expected, [each or "unread" for each in told])
                worst[name] = min(verdict, worst[name], key=VERDICTS.index)
    found = durability_of(Ledger(ledger), rounds, 0)
    for verdict in VERDICTS:
        assert found[verdict] == (list(worst.values()).count(verdict) if present else 0)
    assert (found.verdict == "fail") == any(found[verdict] for verdict in WRONG)
    if found.verdict == "pass":
        assert present == {"healed", "restarted"} and found["unread"] == 0
        assert found.acknowledged == sum("ok" in puts for puts, _, _ in drawn) > 0
        assert all(each is not None for _, _, both in drawn for one in both for each in one)


def durability(directory: Path, **scene: Any) -> Any:
    return read_drill(write_drill(directory, phases_s=(3, 4, 3), **scene)).durability


@pytest.mark.parametrize("verdict", [*WRONG, "unread", "recovered"])
def test_each_verdict_is_reported_by_its_name(tmp_path: Path, verdict: str) -> None:
    troubles = [Trouble("down", 4, 5, ["victim"]), Trouble("reset", 5, 5.3)]
    told = durability(tmp_path / "b", troubles=troubles, spoil={verdict: 1}, interval_ms=100)
    assert {name: n for name, n in told.counts.items() if n and name != "fine"} == {verdict: 1}
    expected = {"unread": "unknown", "recovered": "pass"}.get(verdict, "fail")
    assert told.verdict == expected, told.why
    (example,) = told.examples[verdict]
    assert example.round == "healed" and set(example.answers) == {"n1", "n2", "n3", "n4"}


@pytest.mark.parametrize(
    ("rounds", "spoil", "verdict"),
    [
        (("healed", "restarted"), {}, "pass"),
        ((), {}, "unknown"),
        (("healed",), {}, "unknown"),
        (("restarted",), {}, "unknown"),
        (("healed",), {"lost": EXAMPLES + 5}, "fail"),
    ],
)
def test_a_round_that_is_missing_is_never_passed_and_hides_no_loss(
    tmp_path: Path, rounds: Sequence[str], spoil: Mapping[str, int], verdict: str
) -> None:
    told = durability(tmp_path / "b", rounds=rounds, spoil=spoil)
    assert told.verdict == verdict, told.why
    assert [each.complete for each in told.rounds] == [
        name in rounds for name in ("healed", "restarted")
    ]
    assert len(told.examples.get("lost", ())) == min(spoil.get("lost", 0), EXAMPLES)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.7, 0.999])
def test_a_verification_cut_short_anywhere_is_unknown(tmp_path: Path, part: float) -> None:
    path = write_drill(tmp_path / "b", phases_s=(3, 4, 3))
    whole = (path / "verification.jsonl").read_bytes()
    (path / "verification.jsonl").write_bytes(whole[: int(len(whole) * part)])
    told = read_drill(path).durability
    assert told.verdict == "unknown"
    assert not told.rounds[1].complete
    assert sum(told.counts.values()) == told.counts["unread"] + told.counts["fine"]


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
    lines: list[dict[str, Any]] = [{"round": "healed", "nodes": list(NODES), "passes": 3}]
    for answer in said.split(", "):
        node, found = answer.split()
        lines.append({"round": "healed", "node": node, "key": "k", "found": found})
    rounds = read_verification(written(tmp_path, "verification", lines))
    told = durability_of(Ledger({"k": Key("k", "v", ["ok"])}, 1), rounds, 0)
    assert {name: n for name, n in told.counts.items() if n} == counts
    assert told.late == late


def test_a_drill_that_wrote_nothing_passes_nothing() -> None:
    rounds = {name: Round(NODES, 1) for name in ("healed", "restarted")}
    assert durability_of(Ledger(), rounds, 0).verdict == "unknown"
    assert durability_of(None, rounds, 0).verdict == "unknown"


def test_a_write_that_was_sent_and_is_not_in_the_ledger_is_noticed(tmp_path: Path) -> None:
    path = write_drill(tmp_path / "b", phases_s=(3, 4, 3), objects=1)
    lines = (path / "ledger.jsonl").read_text().splitlines(keepends=True)
    gone = max(json.loads(line)["id"] for line in lines)
    kept = [line for line in lines if json.loads(line)["id"] != gone]
    (path / "ledger.jsonl").write_text("".join(kept))
    drill = read_drill(path)
    assert drill.durability.unledgered == 1 and not drill.passed


def written(directory: Path, name: str, lines: Sequence[Mapping[str, Any]]) -> Path:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (directory / f"{name}.jsonl").write_text(text)
    return directory
