"""The ledger as it lies on disk: for each key, what must be there when all is healed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from wanlat.bundle.errors import BundleError
from wanlat.bundle.read import read_lines


class Expected(StrEnum):
    """What must be found at a key."""

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
    def acknowledged(self) -> bool:
        """Whether a put of it was."""
        return "ok" in self.puts

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
        return Expected.PRESENT if self.acknowledged else Expected.MAYBE


@dataclass(frozen=True)
class Ledger:
    """Every key that anybody began to write, by name, in the order of invocation.

    `invoked` counts writes, puts and removes. `orphans` are outcomes of writes whose invocation
    is not in it, which the writer of the ledger makes impossible.
    """

    keys: dict[str, Key]
    invoked: int
    orphans: int


def read_ledger(directory: Path) -> Ledger | None:
    """The ledger of a drill; None where there is none. Raises BundleError if it is damaged."""
    path = directory / "ledger.jsonl"
    if not path.is_file():
        return None
    lines, _ = read_lines(path)
    try:
        return _ledger(lines)
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(
            f"{path} is damaged: {type(error).__name__} {error}. What was lost cannot be told; "
            "run the drill again."
        ) from error


def _ledger(lines: Iterable[dict[str, Any]]) -> Ledger:
    invoked: dict[int, dict[str, Any]] = {}
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
