"""What became of every write, and what of every claim.

Durability comes from the ledger and what was found at every node alone. A key that was not read at
some node is never passed, and neither is a drill that lacks a round. A claim names a window of a
phase, or the durability; its verdict is that of `analysis.claims`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wanlat.analysis.claims import LEAST_DUE, SIGNIFICANCE, Bound, Verdict
from wanlat.analysis.figures.drill.requests import quantity
from wanlat.analysis.names import count
from wanlat.analysis.stats.intervals import holm, wilson
from wanlat.bundle.documents import MISSED, NOT_SENT, OUTCOMES
from wanlat.bundle.errors import BundleError
from wanlat.bundle.outcomes import are_too_many, why_too_many
from wanlat.bundle.read import read_records

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
Row = Mapping[str, Any]

ROUNDS = {"healed": "after the heal", "restarted": "after the restart"}
WRONG = ("corrupt", "lost", "stale", "resurrected", "unexpected")
"""What a key can be of which one is enough for the drill to fail, the worst first."""
VERDICTS = (*WRONG, "unread", "recovered", "fine")
EXAMPLES = 20
"""Of each verdict."""
OPEN_S = 1.0
"""Of a request that was sent so shortly before its phase ended, and was on its way then, it is not
known whether it would have been answered."""

PRESENT, REMOVED, NEVER = "present", "removed", "never written"
MAYBE, EITHER = "maybe written", "maybe removed"
"""What must be found at a key when all is healed; docs/reference/statistics.md has when which."""


@dataclass
class Key:
    """One key: who wrote it, and the outcomes of its puts and removes, in order of invocation.

    A write without a second line, because the drill was killed, is "unknown".
    """

    client: str
    put: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    was_missed: bool = False
    """A removal did not find what had been acknowledged."""

    @property
    def expected(self) -> str:
        """What must be found."""
        if set(self.put) <= {"fail", NOT_SENT}:
            return NEVER
        if "ok" in self.remove:
            # A put of which nobody knows may be executed at any later time.
            return EITHER if "unknown" in self.put else REMOVED
        if "unknown" in self.remove:
            return EITHER
        return PRESENT if "ok" in self.put else MAYBE


@dataclass
class Round:
    """One round: the nodes that were to be queried, and of each key what each of them answered.

    An answer is "yes", "no", "wrong" or "unread". `late` are keys of which some node answered
    otherwise at first than when it was queried again.
    """

    nodes: tuple[str, ...] = ()
    answers: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    late: set[str] = field(default_factory=set)

    def answers_to(self, key: str) -> dict[str, str]:
        """Each node's answer on `key`: "unread" where it gave no answer."""
        return dict.fromkeys(self.nodes, "unread") | self.answers.get(key, {})

    def covers(self, keys: Iterable[str]) -> bool:
        """Whether each key was looked up at each node."""
        nodes = set(self.nodes)
        return bool(nodes) and all(nodes <= self.answers.get(key, {}).keys() for key in keys)


def read_ledger(directory: Path) -> dict[str, Key]:
    """Every key that anybody began to write, in the order of invocation; none without a ledger.

    Raises BundleError if it is damaged.
    """
    return _parsed(directory, "ledger", _keys)


def read_verification(directory: Path) -> dict[str, Round]:
    """The rounds there are, by name. Raises BundleError where the file is damaged."""
    return _parsed(directory, "verification", _rounds)


def durability_of(
    keys: Mapping[str, Key], rounds: Mapping[str, Round], unledgered: int
) -> dict[str, Any]:
    """The verdict on every key of the ledger and on the drill, as summary.json has them.

    Counts are of keys, by their worst verdict; `verdict` is "pass", "fail" or "unknown".
    `unledgered` are requests that were sent although the ledger does not have them: then what the
    store holds cannot be judged.
    """
    of_rounds: list[Row] = []
    examples: dict[str, list[Row]] = {name: [] for name in VERDICTS}
    worst: dict[str, tuple[int, str]] = {}
    for name in ROUNDS:
        of_round = rounds.get(name, Round())
        judged = [
            (key, verdict_of(state.expected, of_round.answers_to(key)))
            for key, state in keys.items()
        ]
        for key, verdict in judged if name in rounds else ():
            place = VERDICTS.index(verdict)
            if key not in worst or place < worst[key][0]:
                worst[key] = place, name
        of_rounds.append(
            {
                "round": name,
                "present": name in rounds,
                "complete": of_round.covers(keys),
                "keys": len(keys.keys() & of_round.answers.keys()),
                "nodes": list(of_round.nodes),
                **_counted(verdict for _, verdict in judged if name in rounds),
            }
        )
    for key, (place, name) in worst.items():
        if len(examples[VERDICTS[place]]) < EXAMPLES:
            words = {"round": name, "expected": keys[key].expected}
            words |= {"written_through": keys[key].client}
            answers = rounds[name].answers_to(key)
            examples[VERDICTS[place]].append({"key": key, **words, "answers": answers})
    counts = _counted(VERDICTS[place] for place, _ in worst.values())
    acknowledged = sum("ok" in key.put for key in keys.values())
    written = count(acknowledged, "acknowledged write")
    verdict, why = "pass", f"{written}, each as it must be at every node"
    if any(counts[name] for name in WRONG):
        wrong = ", ".join(f"{counts[name]} {name}" for name in WRONG if counts[name])
        verdict, why = "fail", f"{wrong} of {written}"
    missed = sum(key.was_missed for key in keys.values())
    strangers = len({key for checked in rounds.values() for key in checked.answers} - keys.keys())
    if verdict == "pass" and (
        doubts := [
            *_doubts(of_rounds, counts["unread"], strangers, unledgered, acknowledged, missed)
        ]
    ):
        verdict, why = "unknown", "; ".join(doubts)
    return {
        "acknowledged": acknowledged,
        **counts,
        "verdict": verdict,
        "why": why,
        "invoked": sum(len(key.put) + len(key.remove) for key in keys.values()),
        "removed": sum("ok" in key.remove for key in keys.values()),
        **({"missed_by_removals": missed} if missed else {}),
        "late": len({key for checked in rounds.values() for key in checked.late}),
        "unledgered": unledgered,
        "rounds": of_rounds,
        "examples": {name: shown for name, shown in examples.items() if shown and name != "fine"},
    }


def verdict_of(expected: str, answers: Mapping[str, str]) -> str:
    """The verdict on a key of which each node in `answers` answered yes, no, wrong or unread."""
    answered = set(answers.values())
    if "wrong" in answered:
        return "corrupt"
    if expected == PRESENT and {"yes", "no"} <= answered:
        return "stale"
    if expected in (REMOVED, NEVER) and "yes" in answered:
        return "resurrected" if expected == REMOVED else "unexpected"
    if not answered or "unread" in answered:
        # Also where the others said no: the one that did not answer may have it.
        return "unread"
    if expected == PRESENT and "no" in answered:
        return "lost"
    return "recovered" if "yes" in answered and expected == MAYBE else "fine"


def _parsed(directory: Path, name: str, parse: Callable[[Sequence[Row]], T]) -> T:
    """What `parse` makes of the lines of a table, or of none. Raises BundleError."""
    lines, path = read_records(directory, name)
    try:
        return parse(lines)
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(
            f"{path} is damaged: {type(error).__name__} {error}. What was lost cannot be known; "
            "run the drill again."
        ) from error


def _keys(lines: Iterable[Row]) -> dict[str, Key]:
    invoked: dict[int, Row] = {}
    outcomes: dict[int, str] = {}
    missed: set[int] = set()
    for line in lines:
        if line["state"] == "invoked":
            invoked[line["id"]] = line
        elif line["id"] in invoked:  # whose first line is on disk before it is sent
            outcomes[line["id"]] = _one_of(OUTCOMES, line["state"])
            if str(line.get("error") or "").startswith(MISSED):
                missed.add(line["id"])
        else:
            raise ValueError(f"write {line['id']} has an outcome and was never begun")
    keys: dict[str, Key] = {}
    for number, line in invoked.items():
        key = keys.setdefault(str(line["key"]), Key(str(line.get("client") or "")))
        lists = {"put": key.put, "remove": key.remove}
        lists[line["op"]].append(outcomes.get(number, "unknown"))
        key.was_missed |= number in missed
    return keys


def _rounds(lines: Iterable[Row]) -> dict[str, Round]:
    rounds: dict[str, Round] = {}
    for line in lines:
        name = _one_of(tuple(ROUNDS), line["round"])
        if "key" not in line:
            nodes = rounds.setdefault(name, Round()).nodes
            rounds[name].nodes = tuple(map(str, line.get("nodes") or nodes))
            continue
        answer, key = _one_of(("yes", "no", "wrong", "unread"), line["found"]), str(line["key"])
        answers, node = rounds[name].answers[key], str(line["node"])
        before = answers.get(node)
        if line.get("late") or (before == "no" and answer == "yes"):
            rounds[name].late.add(key)
        # The last answer of a node counts, but wrong bytes for ever: once served is served.
        if before != "wrong" and (before is None or answer != "unread"):
            answers[node] = answer
    return rounds


def _one_of(words: Sequence[str], word: Any) -> str:
    if word not in words:
        raise ValueError(f"{word!r} is none of {', '.join(words)}")
    return str(word)


def _counted(verdicts: Iterable[str]) -> dict[str, int]:
    counts = Counter(verdicts)
    return {name: counts[name] for name in VERDICTS}


def _doubts(
    rounds: Sequence[Row],
    unread: int,
    strangers: int,
    unledgered: int,
    acknowledged: int,
    missed: int,
) -> Iterator[str]:
    """Reasons to doubt that nothing was lost."""
    for entry in rounds:
        if not entry["present"]:
            yield f"no verification {ROUNDS[entry['round']]}"
        elif not entry["complete"]:
            yield f"the verification {ROUNDS[entry['round']]} is not complete"
    if unread:
        yield f"{count(unread, 'key')} could not be read at every node"
    if strangers:
        yield f"{count(strangers, 'key')} that the ledger does not have"
    if unledgered:
        yield f"{count(unledgered, 'write')} that the ledger does not have"
    if missed:
        yield f"{count(missed, 'removal')} did not find what had been acknowledged"
    if not acknowledged:
        yield "no write was acknowledged, so nothing could be lost"


BOUNDS = {"at_least": "≥", "at_most": "≤"}


def bound_of(claim: Row) -> str:
    """The bound of a claim: ``reads ok ≥ 90% at survivor, from 10s``."""
    figure = claim.get("availability")
    if figure is None:
        return f"durability {claim.get('durability')}"
    bounds = (f"{sign} {figure[key]}" for key, sign in BOUNDS.items() if key in figure)
    where = f" at {figure['client']}" if "client" in figure else ""
    phase = figure.get("phase", "during")
    when = [phase] if phase != "during" else []
    when += [f"{key} {figure[key]}" for key in ("from", "to") if quantity(figure.get(key))]
    text = f"{figure.get('of')} ok {' and '.join(bounds)}{where}"
    return ", ".join([text, *([" ".join(when)] if when else [])])


def claims_of(
    specs: Sequence[Row],
    requests: pd.DataFrame,
    phases: Sequence[Row],
    nodes: Mapping[str, str],
    durability: Row,
    lacking: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """The claims of a manifest, each with its verdict; `nodes`: where each client ran.

    Where evidence is `lacking`, none is decided.

    Verdicts on shares are corrected for all of the drill's; `p` is each one's own (null: none).
    """
    judged: list[dict[str, Any]] = []
    for spec in specs:
        if lacking:
            verdict, p, evidence = Verdict.NOT_DECIDED, None, "; ".join(lacking)
        elif "availability" in spec:
            verdict, p, evidence = _on_availability(spec["availability"], requests, phases, nodes)
        else:
            verdict, p, evidence = _on_durability(str(spec.get("durability")), durability)
        words = {key: str(spec.get(key, "")) for key in ("id", "claim", "source")}
        judged.append({**words, "verdict": str(verdict), "p": p, "evidence": evidence, **spec})
    return corrected(judged)


def corrected(claims: Sequence[Row]) -> list[dict[str, Any]]:
    """Claims, of which those on shares are decided only if that holds for all at once (Holm)."""
    ps = [claim["p"] for claim in claims if claim.get("p") is not None]
    adjusted = iter(holm(ps))
    return [
        {**claim, "verdict": str(Verdict.NOT_DECIDED)}
        if claim.get("p") is not None and next(adjusted) >= SIGNIFICANCE
        else dict(claim)
        for claim in claims
    ]


Judged = tuple[Verdict, float | None, str]
"""A verdict, how surprising the figure were on the bound (None: it is no share), and what it rests
on."""


def _on_durability(claimed: str, durability: Row) -> Judged:
    if durability["verdict"] == "unknown":
        return Verdict.NOT_DECIDED, None, f"durability is unknown: {durability['why']}"
    as_claimed = (durability["verdict"] == "pass") == (claimed == "intact")
    verdict = Verdict.HOLDS if as_claimed else Verdict.DOES_NOT_HOLD
    return verdict, None, str(durability["why"])


def _on_availability(
    spec: Row, requests: pd.DataFrame, phases: Sequence[Row], nodes: Mapping[str, str]
) -> Judged:
    """The verdict on a share of what was due in a window of a phase, and what it rests on:

    "157 of 160 reads from n3 (survivor) between 5 s and 30 s of `during` were ok before its end
    (98.1 %, 95–99 %)"
    """
    name, client, what = (str(spec.get(key) or "") for key in ("phase", "client", "of"))
    name = name or "during"
    phase = next(entry for entry in phases if entry["name"] == name)
    if phase["begin_s"] is None:
        return Verdict.NOT_DECIDED, None, f"`{name}` was not reached"
    since_s, until_s = quantity(spec.get("from")) or 0.0, quantity(spec.get("to"))
    at_s = requests["due_s"] - phase["begin_s"]
    chosen = (requests["phase"] == name) & (at_s >= since_s)
    chosen &= requests["operation"] == what.removesuffix("s")
    if until_s is not None:
        chosen &= at_s < until_s
    if client:
        chosen &= requests["client"] == client
    in_time = requests["end_s"] <= phase["end_s"]
    rows = requests[chosen & (in_time | ~(requests["start_s"] > phase["end_s"] - OPEN_S))]
    is_ours = rows["outcome"] == NOT_SENT
    expired = int((~rows["sent"] & ~is_ours).sum())
    due, not_sent = int((~is_ours).sum()), int(is_ours.sum())
    ok = int((in_time & (rows["outcome"] == "ok")).sum())
    when = f"from {since_s:g} s of `{name}` on" if since_s else f"in `{name}`"
    if until_s is not None:
        when = f"between {since_s:g} s and {until_s:g} s of `{name}`"
    where = f"from {nodes.get(client, client)} ({client})" if client else "from everywhere"
    evidence = f"{ok} of {count(due, what.removesuffix('s'))} {where} {when} were ok before its end"
    ci95 = wilson(ok, due)
    if due:
        share, low, high = (f"{100 * part:.1f}" for part in (ok / due, *ci95))
        evidence += f" ({share} %, {low}–{high} %)"
    if expired:
        evidence += f"; {expired} of them expired before they could be sent"
    if not_sent:
        evidence += f"; besides, this machine could not send {not_sent}"
    if are_too_many(not_sent, len(rows)):
        return Verdict.NOT_DECIDED, None, why_too_many(not_sent, len(rows)).rstrip(".")
    measured_s = phase["end_s"] - phase["begin_s"]
    if not phase["complete"] and (until_s is None or measured_s < until_s):
        cut_short = f"{evidence}; `{name}` was cut short after {measured_s:.1f} s"
        return Verdict.NOT_DECIDED, None, cut_short
    if due < LEAST_DUE:
        return Verdict.NOT_DECIDED, None, f"{evidence}: too few to decide"
    bound = Bound.from_claim({key: quantity(spec[key]) for key in BOUNDS if key in spec})
    return *bound.judge(ok / due, ci95), evidence
