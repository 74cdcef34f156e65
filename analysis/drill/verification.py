"""What was found when every key was asked for at every node, after the heal and the restart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wanlat.analysis.drill.model import ROUNDS
from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_lines

FOUND = ("yes", "no", "wrong", "unread")


@dataclass
class Round:
    """One round: the nodes that were to be asked, and for each key what each of them answered.

    A node that gave no answer is not in a key's answers, or is with "unread". `late` are keys
    that some node did not find at first and did when it was asked again.
    """

    name: str
    nodes: tuple[str, ...]
    passes: int | None
    answers: dict[str, dict[str, str]] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)

    def of(self, key: str) -> dict[str, str]:
        """What each node said of `key`: "yes", "no", "wrong" or "unread"."""
        answers = self.answers.get(key, {})
        return {node: answers.get(node, "unread") for node in (self.nodes or answers)}


def read_verification(directory: Path) -> dict[str, Round]:
    """The rounds there are, by name. Raises BundleError where the file is damaged.

    A round whose first line was not written does not count as begun.
    """
    path = directory / "verification.jsonl"
    if not path.is_file():
        return {}
    lines, _ = read_lines(path)
    try:
        return _rounds(lines)
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(
            f"{path} is damaged: {type(error).__name__} {error}. What was lost cannot be told; "
            "run the drill again."
        ) from error


def _rounds(lines: Iterable[Mapping[str, Any]]) -> dict[str, Round]:
    rounds: dict[str, Round] = {}
    for line in lines:
        name = str(line["round"])
        if name not in ROUNDS:
            raise ValueError(f"round {name!r}")
        if "key" not in line:
            _header(rounds, name, line)
            continue
        found = str(line["found"])
        if found not in FOUND:
            raise ValueError(f"found {found!r}")
        of_round = rounds[name]
        key, node = str(line["key"]), str(line["node"])
        answers = of_round.answers.setdefault(key, {})
        _take(of_round, answers, key, node, found)
        if line.get("late"):
            of_round.late.add(key)
    return rounds


def _header(rounds: dict[str, Round], name: str, line: Mapping[str, Any]) -> None:
    passes = line.get("passes")
    known = rounds.setdefault(name, Round(name, (), None))
    known.nodes = tuple(str(node) for node in line.get("nodes") or known.nodes)
    known.passes = passes if isinstance(passes, int) else known.passes


def _take(of_round: Round, answers: dict[str, str], key: str, node: str, found: str) -> None:
    """Keep the last answer of a node, but wrong bytes for ever: once served is served."""
    before = answers.get(node)
    if before == "no" and found == "yes":
        of_round.late.add(key)
    if before != "wrong" and not (before in ("yes", "no") and found == "unread"):
        answers[node] = found
