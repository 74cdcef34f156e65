"""What was lost, told from the ledger and from what each node answered, and never guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from drill_bundles import write_drill
from hypothesis import given, settings
from hypothesis import strategies as st

from wanlat.analysis.drill.durability import EXAMPLES, VERDICTS, durability_of, verdict_of
from wanlat.analysis.drill.ledger import Expected, Key, Ledger, read_ledger
from wanlat.analysis.drill.read import read_drill
from wanlat.analysis.drill.verification import Round, read_verification
from wanlat.bundle.errors import BundleError

NODES = ("n1", "n2", "n3")
ANSWERS = ("yes", "no", "wrong", "unread")


# --- what must be there ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("puts", "removes", "expected"),
    [
        (["ok"], [], Expected.PRESENT),
        (["fail"], [], Expected.NEVER),
        (["unknown"], [], Expected.MAYBE),
        (["unknown", "ok"], [], Expected.PRESENT),  # tried again by the filling
        (["fail", "ok"], [], Expected.PRESENT),
        (["fail", "unknown"], [], Expected.MAYBE),
        (["ok"], ["ok"], Expected.REMOVED),
        (["ok"], ["fail"], Expected.PRESENT),  # a remove that failed was certainly not executed
        (["ok"], ["unknown"], Expected.EITHER),
        (["ok"], ["unknown", "ok"], Expected.REMOVED),
        (["unknown"], ["ok"], Expected.EITHER),  # the put may be executed after the remove
        (["unknown", "ok"], ["ok"], Expected.EITHER),
    ],
)
def test_what_must_be_at_a_key_follows_from_what_was_acknowledged(
    puts: list[str], removes: list[str], expected: Expected
) -> None:
    assert Key("k", "v", puts, removes).expected is expected


def test_a_write_without_an_outcome_is_one_of_which_nobody_knows(tmp_path: Path) -> None:
    lines = [
        {"state": "invoked", "id": 1, "op": "put", "key": "a", "client": "v", "t_ns": 1},
        {"id": 1, "state": "ok", "t_ns": 2},
        {"state": "invoked", "id": 2, "op": "put", "key": "b", "client": "v", "t_ns": 3},
        {"state": "invoked", "id": 3, "op": "remove", "key": "a", "client": "v", "t_ns": 4},
    ]
    (tmp_path / "ledger.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ledger = read_ledger(tmp_path)
    assert ledger is not None
    assert {name: key.expected for name, key in ledger.keys.items()} == {
        "a": Expected.EITHER,
        "b": Expected.MAYBE,
    }


def test_an_outcome_without_an_invocation_means_the_ledger_cannot_be_trusted(
    tmp_path: Path,
) -> None:
    (tmp_path / "ledger.jsonl").write_text('{"id": 9, "state": "ok", "t_ns": 2}\n')
    ledger = read_ledger(tmp_path)
    assert ledger is not None and ledger.orphans == 1


@pytest.mark.parametrize(
    "line", ['{"id": 1, "state": "perhaps"}', '{"state": "invoked", "id": 1, "op": "copy"}', "{}"]
)
def test_a_ledger_that_says_nonsense_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "ledger.jsonl").write_text(line + "\n" + line + "\n")
    with pytest.raises(BundleError, match=r"ledger\.jsonl is damaged"):
        read_ledger(tmp_path)


# --- one key ---------------------------------------------------------------------------------


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


def test_nothing_that_was_not_read_is_passed() -> None:
    for expected in Expected:
        for answers in product(ANSWERS, repeat=3):
            if "unread" in answers:
                told = verdict_of(expected, dict(zip(NODES, answers, strict=True)))
                assert told not in ("fine", "recovered", "lost"), (expected, answers)


# --- a whole drill ---------------------------------------------------------------------------

keys = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["ok", "fail", "unknown"]), min_size=1, max_size=2),
        st.lists(st.sampled_from(["ok", "fail", "unknown"]), max_size=2),
        st.lists(
            st.lists(st.sampled_from([*ANSWERS, None]), min_size=3, max_size=3),
            min_size=2,
            max_size=2,
        ),
    ),
    max_size=8,
)


@settings(max_examples=300, deadline=None)
@given(keys, st.sets(st.sampled_from(["healed", "restarted"])))
def test_durability_agrees_with_brute_force(drawn: Any, present: set[str]) -> None:
    ledger, rounds = {}, {}
    for name in sorted(present):
        rounds[name] = Round(name, NODES, 1)
    for number, (puts, removes, of_rounds) in enumerate(drawn):
        key = Key(f"k{number}", "v", list(puts), list(removes))
        ledger[key.name] = key
        for name, answers in zip(("healed", "restarted"), of_rounds, strict=True):
            if name in rounds:
                given = {n: a for n, a in zip(NODES, answers, strict=True) if a is not None}
                if given:
                    rounds[name].answers[key.name] = given
    told = durability_of(Ledger(ledger, 0, 0), rounds, 0)

    worst: dict[str, str] = {}
    for number, (_, _, of_rounds) in enumerate(drawn):
        expected = ledger[f"k{number}"].expected
        for name, answers in zip(("healed", "restarted"), of_rounds, strict=True):
            if name in present:
                verdict = oracle(expected, [answer or "unread" for answer in answers])
                known = worst.get(f"k{number}", "fine")
                worst[f"k{number}"] = min(verdict, known, key=VERDICTS.index)
    for verdict in VERDICTS:
        assert told[verdict] == list(worst.values()).count(verdict)
    wrong = any(told[v] for v in ("lost", "corrupt", "stale", "resurrected", "unexpected"))
    assert (told.verdict == "fail") == wrong
    if told.verdict == "pass":
        assert present == {"healed", "restarted"} and told["unread"] == 0
        assert told.acknowledged == sum("ok" in puts for puts, _, _ in drawn) > 0
        assert all(answer is not None for _, _, r in drawn for one in r for answer in one)
    assert sum(told.counts.values()) == (len(drawn) if present else 0)


def durability(directory: Path, **settings: Any) -> Any:
    return read_drill(write_drill(directory, phases_s=(3, 4, 3), **settings)).durability


@pytest.mark.parametrize(
    "verdict", ["lost", "corrupt", "stale", "resurrected", "unexpected", "unread", "recovered"]
)
def test_each_verdict_is_told_by_its_name(tmp_path: Path, verdict: str) -> None:
    from drill_bundles import Trouble

    troubles = [Trouble("down", 4, 5, ["victim"]), Trouble("reset", 5, 5.3)]
    told = durability(tmp_path / "b", troubles=troubles, spoil={verdict: 1}, interval_ms=100)
    assert {name: n for name, n in told.counts.items() if n and name != "fine"} == {verdict: 1}
    expected = {"unread": "unknown", "recovered": "pass"}.get(verdict, "fail")
    assert told.verdict == expected, told.why
    (example,) = told.examples[verdict]
    assert example.round == "healed" and set(example.answers) == {"n1", "n2", "n3", "n4"}


def test_a_drill_without_loss_passes_and_says_of_how_many_writes(tmp_path: Path) -> None:
    told = durability(tmp_path / "b")
    assert told.verdict == "pass" and str(told.acknowledged) in told.why
    assert told.examples == {}
    assert [(each.complete, each.keys) for each in told.rounds] == [(True, len_of(told))] * 2


def len_of(told: Any) -> int:
    return sum(told.counts.values())


@pytest.mark.parametrize("rounds", [(), ("healed",), ("restarted",)])
def test_a_round_that_is_missing_is_unknown_and_never_passed(
    tmp_path: Path, rounds: Sequence[str]
) -> None:
    told = durability(tmp_path / "b", rounds=rounds)
    assert told.verdict == "unknown"
    assert "no verification" in told.why


def test_a_loss_is_told_although_a_round_is_missing(tmp_path: Path) -> None:
    assert durability(tmp_path / "b", rounds=("healed",), spoil={"lost": 2}).verdict == "fail"


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_a_verification_cut_short_anywhere_is_unknown(tmp_path: Path, part: float) -> None:
    path = write_drill(tmp_path / "b", phases_s=(3, 4, 3))
    whole = (path / "verification.jsonl").read_bytes()
    (path / "verification.jsonl").write_bytes(whole[: int(len(whole) * part)])
    told = read_drill(path).durability
    assert told.verdict == "unknown"
    assert not told.rounds[1].complete
    assert sum(told.counts.values()) == told.counts["unread"] + told.counts["fine"]


def test_what_was_served_wrong_once_stays_corrupt(tmp_path: Path) -> None:
    lines = [header("healed"), answer("healed", "n1", "wrong"), answer("healed", "n1", "yes")]
    (one,) = rounds_of(tmp_path, lines).values()
    assert one.of("k")["n1"] == "wrong"


def test_a_no_that_became_a_yes_is_late_and_no_loss(tmp_path: Path) -> None:
    lines = [header("healed")]
    lines += [answer("healed", node, "no") for node in NODES]
    lines += [answer("healed", node, "yes") for node in NODES]
    rounds = rounds_of(tmp_path, lines)
    told = durability_of(ledger_of_one(), rounds, 0)
    assert (told["lost"], told["fine"], told.late) == (0, 1, 1)


def test_a_line_may_say_itself_that_it_came_late(tmp_path: Path) -> None:
    lines = [header("healed"), answer("healed", "n1", "yes") | {"late": True}]
    assert rounds_of(tmp_path, lines)["healed"].late == {"k"}


def test_a_node_that_is_never_asked_makes_the_key_unread(tmp_path: Path) -> None:
    lines = [header("healed"), answer("healed", "n1", "no"), answer("healed", "n2", "no")]
    told = durability_of(ledger_of_one(), rounds_of(tmp_path, lines), 0)
    assert (told["lost"], told["unread"]) == (0, 1)


def test_a_drill_that_wrote_nothing_passes_nothing() -> None:
    rounds = {name: Round(name, NODES, 1) for name in ("healed", "restarted")}
    assert durability_of(Ledger({}, 0, 0), rounds, 0).verdict == "unknown"
    assert durability_of(None, rounds, 0).verdict == "unknown"


def test_at_most_twenty_keys_of_a_verdict_are_kept(tmp_path: Path) -> None:
    told = durability(tmp_path / "b", spoil={"lost": 25})
    assert told["lost"] == 25 and len(told.examples["lost"]) == EXAMPLES == 20


def test_a_write_that_was_sent_and_is_not_in_the_ledger_is_noticed(tmp_path: Path) -> None:
    path = write_drill(tmp_path / "b", phases_s=(3, 4, 3))
    lines = (path / "ledger.jsonl").read_text().splitlines(keepends=True)
    gone = json.loads(lines[-2])["id"] if "op" in json.loads(lines[-2]) else 1
    kept = [line for line in lines if json.loads(line)["id"] != gone]
    (path / "ledger.jsonl").write_text("".join(kept))
    last = next(json.loads(line) for line in lines if json.loads(line)["id"] == gone)
    drill = read_drill(path)
    is_prefill = last["key"].startswith("fill")
    assert drill.durability.unledgered == (0 if is_prefill else 1)
    assert is_prefill or not drill.passed


@pytest.mark.parametrize("line", ['{"round": "third"}', '{"round": "healed", "key": "k"}', "{}"])
def test_a_verification_that_says_nonsense_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "verification.jsonl").write_text(line + "\n" + line + "\n")
    with pytest.raises(BundleError, match="damaged"):
        read_verification(tmp_path)


def header(name: str) -> dict[str, Any]:
    return {"round": name, "begun_ns": 1, "nodes": list(NODES), "keys": 1, "passes": 3}


def answer(name: str, node: str, found: str) -> dict[str, Any]:
    return {"round": name, "node": node, "key": "k", "found": found, "t_ns": 2}


def rounds_of(directory: Path, lines: Sequence[Mapping[str, Any]]) -> dict[str, Round]:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (directory / "verification.jsonl").write_text(text)
    return read_verification(directory)


def ledger_of_one() -> Ledger:
    return Ledger({"k": Key("k", "v", ["ok"])}, 1, 0)
