"""What became of every write: the ledger against what was found at every node.

From those two alone. A key that was not read at some node is never passed, and neither is a drill
that lacks a round.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from wanlat.analysis.figures.drill.model import ROUNDS, Durability, Example, RoundCounts
from wanlat.analysis.names import count
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_lines

T = TypeVar("T")

WRONG = ("corrupt", "lost", "stale", "resurrected", "unexpected")
"""What a key can be of which one is enough for the drill to fail, the worst first."""
VERDICTS = (*WRONG, "unread", "recovered", "fine")
EXAMPLES = 20
"""Of each verdict."""

_FOUND = ("yes", "no", "wrong", "unread")
_AT = {"healed": "after the heal", "restarted": "after the restart"}


class Expected(StrEnum):
    """What must be found at a key when all is healed."""

    PRESENT = "present"
    """Its put was acknowledged, and no remove of it can have been executed."""
    REMOVED = "removed"
    """Its remove was acknowledged, and nothing that was begun can bring it back."""
    NEVER = "never written"
    """Every put of it certainly failed."""
    MAYBE = "maybe written"
    """Of its put nobody knows, and nobody removed it."""
    EITHER = "maybe removed"
    """Of a remove nobody knows, or it was removed while an earlier put of it may still arrive."""


_WRONG_IF_FOUND = {Expected.REMOVED: "resurrected", Expected.NEVER: "unexpected"}


@dataclass
class Key:
    """One key: the outcomes of its puts and of its removes, in the order of invocation.

    A write without a second line, because the drill was killed, is "unknown".
    """

    name: str
    client: str
    puts: list[str] = field(default_factory=list)
    removes: list[str] = field(default_factory=list)

    @property
    def expected(self) -> Expected:
        """What must be found."""
        if self.puts and set(self.puts) == {"fail"}:
            return Expected.NEVER
        tried = [outcome for outcome in self.removes if outcome != "fail"]
        if "ok" in tried:
            # A put of which nobody knows may be executed at any later time.
            return Expected.EITHER if "unknown" in self.puts else Expected.REMOVED
        if tried:
            return Expected.EITHER
        return Expected.PRESENT if "ok" in self.puts else Expected.MAYBE


@dataclass(frozen=True)
class Ledger:
    """Every key that anybody began to write, by name, in the order of invocation.

    `invoked` counts writes, puts and removes. `orphans` are outcomes of writes whose invocation
    is not in it, which the writer of the ledger makes impossible.
    """

    keys: dict[str, Key] = field(default_factory=dict)
    invoked: int = 0
    orphans: int = 0


@dataclass
class Round:
    """One round: the nodes that were to be asked, and for each key what each of them answered.

    A node that gave no answer is not in a key's answers, or is with "unread". `late` are keys
    that some node did not find at first and did when it was asked again.
    """

    nodes: tuple[str, ...]
    passes: int | None = None
    answers: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    late: set[str] = field(default_factory=set)

    def of(self, key: str) -> dict[str, str]:
        """What each node said of `key`: "yes", "no", "wrong" or "unread"."""
        answers = self.answers.get(key, {})
        return {node: answers.get(node, "unread") for node in (self.nodes or answers)}


def read_ledger(directory: Path) -> Ledger | None:
    """The ledger of a drill; None where there is none. Raises BundleError if it is damaged."""
    return _parsed(directory / "ledger.jsonl", _ledger)


def read_verification(directory: Path) -> dict[str, Round]:
    """The rounds there are, by name. Raises BundleError where the file is damaged.

    A round whose first line was not written does not count as begun.
    """
    return _parsed(directory / "verification.jsonl", _rounds) or {}


def durability_of(
    ledger: Ledger | None, rounds: Mapping[str, Round], unledgered: int
) -> Durability:
    """The verdict on every key of `ledger`, and on the drill.

    `unledgered` are requests that were sent although the ledger does not have them: then what the
    store holds cannot be judged.
    """
    ledger = ledger or Ledger()
    keys = list(ledger.keys.values())
    unledgered += ledger.orphans
    worst: dict[str, tuple[str, str]] = {}
    of_rounds = []
    for name in ROUNDS:
        verdicts = {}
        if (of_round := rounds.get(name)) is not None:
            verdicts = {key.name: verdict_of(key.expected, of_round.of(key.name)) for key in keys}
        of_rounds.append(_counts(name, of_round, verdicts))
        for key, verdict in verdicts.items():
            known = worst.get(key)
            if known is None or VERDICTS.index(verdict) < VERDICTS.index(known[0]):
                worst[key] = verdict, name
    counts = Counter(verdict for verdict, _ in worst.values())
    acknowledged = sum("ok" in key.puts for key in keys)
    verdict, why = _verdict(counts, of_rounds, acknowledged, unledgered)
    return Durability(
        acknowledged=acknowledged,
        counts={name: counts[name] for name in VERDICTS},
        verdict=verdict,
        why=why,
        invoked=ledger.invoked,
        removed=sum("ok" in key.removes for key in keys),
        late=len({key for each in rounds.values() for key in each.late}),
        unledgered=unledgered,
        rounds=tuple(of_rounds),
        examples=_examples(keys, worst, rounds),
    )


def verdict_of(expected: Expected, answers: Mapping[str, str]) -> str:
    """The verdict on a key of which each node in `answers` said yes, no, wrong or unread."""
    said = set(answers.values())
    unread = not answers or "unread" in said
    if "wrong" in said:
        return "corrupt"
    if expected is Expected.PRESENT and {"yes", "no"} <= said:
        return "stale"
    if "yes" in said and expected in _WRONG_IF_FOUND:
        return _WRONG_IF_FOUND[expected]
    if unread:
        # Also where the others said no: the one that did not answer may have it.
        return "unread"
    if expected is Expected.PRESENT and "no" in said:
        return "lost"
    return "recovered" if "yes" in said and expected is Expected.MAYBE else "fine"


def _parsed(path: Path, parse: Callable[[Sequence[Mapping[str, Any]]], T]) -> T | None:
    """What `parse` makes of the lines in `path`; None without a file. Raises BundleError."""
    if not path.is_file():
        return None
    lines, _ = read_lines(path)
    try:
        return parse(lines)
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(
            f"{path} is damaged: {type(error).__name__} {error}. What was lost cannot be known; "
            "run the drill again."
        ) from error


def _ledger(lines: Sequence[Mapping[str, Any]]) -> Ledger:
    invoked: dict[int, Mapping[str, Any]] = {}
    outcomes: dict[int, str] = {}
    orphans = 0
    for line in lines:
        number, state = int(line["id"]), str(line["state"])
        if state == "invoked":
            if line["op"] not in ("put", "remove"):
                raise ValueError(f"op {line['op']!r} is neither put nor remove")
            invoked[number] = line
        elif state not in ("ok", "fail", "unknown"):
            raise ValueError(f"state {state!r} of write {number}")
        elif number in invoked:
            outcomes[number] = state
        else:
            orphans += 1
    keys: dict[str, Key] = {}
    for number, line in invoked.items():
        name = str(line["key"])
        key = keys.setdefault(name, Key(name, str(line.get("client") or "")))
        writes = key.puts if line["op"] == "put" else key.removes
        writes.append(outcomes.get(number, "unknown"))
    return Ledger(keys, len(invoked), orphans)


def _rounds(lines: Sequence[Mapping[str, Any]]) -> dict[str, Round]:
    rounds: dict[str, Round] = {}
    for line in lines:
        name = str(line["round"])
        if name not in ROUNDS:
            raise ValueError(f"round {name!r}")
        if "key" not in line:
            known, passes = rounds.setdefault(name, Round(())), line.get("passes")
            known.nodes = tuple(map(str, line.get("nodes") or known.nodes))
            known.passes = passes if isinstance(passes, int) else known.passes
            continue
        found, key, node = str(line["found"]), str(line["key"]), str(line["node"])
        if found not in _FOUND:
            raise ValueError(f"found {found!r}")
        answers = rounds[name].answers[key]
        before = answers.get(node)
        if line.get("late") or (before == "no" and found == "yes"):
            rounds[name].late.add(key)
        # The last answer of a node counts, but wrong bytes for ever: once served is served.
        if before != "wrong" and not (before in ("yes", "no") and found == "unread"):
            answers[node] = found
    return rounds


def _counts(name: str, of_round: Round | None, verdicts: Mapping[str, str]) -> RoundCounts:
    counts = Counter(verdicts.values())
    each = of_round or Round(())
    asked = [each.answers.get(key, {}) for key in verdicts]
    return RoundCounts(
        round=name,
        present=of_round is not None,
        complete=bool(each.nodes) and all(set(each.nodes) <= set(answers) for answers in asked),
        keys=sum(bool(answers) for answers in asked),
        nodes=each.nodes,
        passes=each.passes,
        late=len(each.late),
        counts={verdict: counts[verdict] for verdict in VERDICTS},
    )


def _verdict(
    counts: Mapping[str, int], rounds: Sequence[RoundCounts], acknowledged: int, unledgered: int
) -> tuple[str, str]:
    """ "pass", "fail" or "unknown", and why in a sentence."""
    wrong = [f"{counts[name]} {name}" for name in WRONG if counts[name]]
    written = count(acknowledged, "acknowledged write")
    if wrong:
        return "fail", f"{', '.join(wrong)} of {written}"
    if doubts := list(_doubts(counts, rounds, acknowledged, unledgered)):
        return "unknown", "; ".join(doubts)
    return "pass", f"{written}, each as it must be at every node"


def _doubts(
    counts: Mapping[str, int], rounds: Sequence[RoundCounts], acknowledged: int, unledgered: int
) -> Iterator[str]:
    """What stands against saying that nothing was lost."""
    if missing := [_AT[each.round] for each in rounds if not each.present]:
        yield f"no verification {' and '.join(missing)}"
    if cut := [_AT[each.round] for each in rounds if each.present and not each.complete]:
        yield f"the verification {' and '.join(cut)} is not complete"
    if counts["unread"]:
        yield f"{count(counts['unread'], 'key')} could not be read at every node"
    if unledgered:
        yield f"{count(unledgered, 'write')} that the ledger does not have"
    if not acknowledged:
        yield "no write was acknowledged, so nothing could be lost"


def _examples(
    keys: Sequence[Key], worst: Mapping[str, tuple[str, str]], rounds: Mapping[str, Round]
) -> dict[str, tuple[Example, ...]]:
    """The first EXAMPLES keys of each verdict that says something, in the ledger's order."""
    found: dict[str, list[Example]] = {name: [] for name in VERDICTS if name != "fine"}
    for key in keys:
        verdict, name = worst.get(key.name, ("fine", ""))
        if verdict != "fine" and len(found[verdict]) < EXAMPLES:
            answers = rounds[name].of(key.name)
            found[verdict].append(Example(key.name, name, key.expected.value, key.client, answers))
    return {name: tuple(examples) for name, examples in found.items() if examples}
