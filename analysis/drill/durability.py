"""What became of every write: the ledger against what was found at every node.

From those two alone. A key that was not read at some node is never passed, and neither is a drill
that lacks a round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from wanlat.analysis.drill.ledger import Expected, Key, Ledger
from wanlat.analysis.drill.model import ROUNDS, Durability, Example, RoundCounts
from wanlat.analysis.drill.verification import Round
from wanlat.analysis.names import count

VERDICTS = (
    "corrupt",
    "lost",
    "stale",
    "resurrected",
    "unexpected",
    "unread",
    "recovered",
    "fine",
)
"""What a key can be, the worst first."""
WRONG = frozenset({"corrupt", "lost", "stale", "resurrected", "unexpected"})
"""Those of which one is enough for the drill to fail."""
EXAMPLES = 20
"""Of each verdict."""

_WRONG_IF_FOUND = {Expected.REMOVED: "resurrected", Expected.NEVER: "unexpected"}
_AT = {"healed": "after the heal", "restarted": "after the restart"}


def durability_of(
    ledger: Ledger | None, rounds: Mapping[str, Round], unledgered: int
) -> Durability:
    """The verdict on every key of `ledger`, and on the drill.

    `unledgered` are requests that were sent although the ledger does not have them: then what the
    store holds cannot be judged.
    """
    keys = list(ledger.keys.values()) if ledger else []
    unledgered += ledger.orphans if ledger else 0
    worst: dict[str, tuple[str, str]] = {}
    of_rounds = []
    for name in ROUNDS:
        if name not in rounds:
            of_rounds.append(_absent(name))
            continue
        verdicts = {key.name: verdict_of(key.expected, rounds[name].of(key.name)) for key in keys}
        of_rounds.append(_counts(rounds[name], keys, verdicts))
        for key, verdict in verdicts.items():
            known = worst.get(key)
            if known is None or VERDICTS.index(verdict) < VERDICTS.index(known[0]):
                worst[key] = verdict, name
    counts = Counter(verdict for verdict, _ in worst.values())
    acknowledged = sum(key.acknowledged for key in keys)
    verdict, why = _verdict(counts, of_rounds, acknowledged, unledgered)
    return Durability(
        verdict=verdict,
        why=why,
        invoked=ledger.invoked if ledger else 0,
        acknowledged=acknowledged,
        removed=sum("ok" in key.removes for key in keys),
        counts={name: counts[name] for name in VERDICTS},
        rounds=tuple(of_rounds),
        examples=_examples(keys, worst, rounds),
        late=len({key for of_round in rounds.values() for key in of_round.late}),
        unledgered=unledgered,
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


def _absent(name: str) -> RoundCounts:
    return RoundCounts(name, False, False, (), 0, None, dict.fromkeys(VERDICTS, 0), 0)


def _counts(of_round: Round, keys: Sequence[Key], verdicts: Mapping[str, str]) -> RoundCounts:
    counts = Counter(verdicts.values())
    asked = sum(key.name in of_round.answers for key in keys)
    complete = bool(of_round.nodes) and all(
        set(of_round.nodes) <= set(of_round.answers.get(key.name, ())) for key in keys
    )
    return RoundCounts(
        name=of_round.name,
        present=True,
        complete=complete,
        nodes=of_round.nodes,
        keys=asked,
        passes=of_round.passes,
        counts={name: counts[name] for name in VERDICTS},
        late=len(of_round.late),
    )


def _verdict(
    counts: Mapping[str, int], rounds: Sequence[RoundCounts], acknowledged: int, unledgered: int
) -> tuple[str, str]:
    """ "pass", "fail" or "unknown", and why in a sentence."""
    wrong = [f"{counts[name]} {name}" for name in VERDICTS if name in WRONG and counts[name]]
    of = f"of {count(acknowledged, 'acknowledged write')}"
    if wrong:
        return "fail", f"{', '.join(wrong)} {of}"
    doubts = list(_doubts(counts, rounds, acknowledged, unledgered))
    if doubts:
        return "unknown", "; ".join(doubts)
    return "pass", f"{count(acknowledged, 'acknowledged write')}, each as it must be at every node"


def _doubts(
    counts: Mapping[str, int], rounds: Sequence[RoundCounts], acknowledged: int, unledgered: int
) -> Iterator[str]:
    """What stands against saying that nothing was lost."""
    if missing := [_AT[each.name] for each in rounds if not each.present]:
        yield f"no verification {' and '.join(missing)}"
    if cut := [_AT[each.name] for each in rounds if each.present and not each.complete]:
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
    """The first EXAMPLES keys of each verdict that tells something, in the ledger's order."""
    found: dict[str, list[Example]] = {name: [] for name in VERDICTS if name != "fine"}
    for key in keys:
        verdict, name = worst.get(key.name, ("fine", ""))
        if verdict == "fine" or len(found[verdict]) >= EXAMPLES:
            continue
        found[verdict].append(
            Example(
                key=key.name,
                verdict=verdict,
                round=name,
                expected=key.expected.value,
                written_through=key.client,
                answers=rounds[name].of(key.name),
            )
        )
    return {name: tuple(examples) for name, examples in found.items() if examples}
