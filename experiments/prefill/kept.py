"""The data of a prefill that was interrupted: what `--resume` goes on with.

With ``storage: disk`` and a prefill, a system's node directories lie in its bundle until it is
complete:

    BUNDLE/kept/SYSTEM/kept.json     whose data it is, and how far it came
    BUNDLE/kept/SYSTEM/nodes/NODE/   the stores' own data
    BUNDLE/kept/SYSTEM/filled-1.raw  what was acknowledged, a file for each attempt

Nothing of it is outside of the bundle, so that to throw a bundle away throws all away.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from wanlat.experiments.prepared import Prepared, Subject

DIRECTORY = "kept"
_STATE = "kept.json"

State = Literal["filling", "filled", "measuring"]
"""``filled``: every object was acknowledged; ``measuring``: and after that, requests were sent that
are no part of the prefill."""


class Kept:
    """What one system of a bundle keeps until it is complete."""

    def __init__(self, directory: Path, identity: Mapping[str, Any]) -> None:
        self.directory = directory
        self._identity = json.loads(json.dumps(dict(identity)))
        self.state: State = "filling"
        self.attempts = 0
        """How often a measurement was begun on these data."""
        self.why_anew: str | None = None
        """Why what an earlier attempt left was thrown away; None where nothing was."""

    @classmethod
    def of(cls, prepared: Prepared, subject: Subject, bundle: Path) -> Self | None:
        """Take over what an earlier attempt left in the bundle, if it is of use; else make room.

        None where nothing outlives a run: without a prefill, or where the data lie in memory.
        """
        study = prepared.study
        if study.prefill is None or study.storage != "disk":
            return None
        identity = {
            "the prefill": study.prefill.to_dict(),
            "the objects' size": study.prefill.object_bytes(study.object_size),
            "the seed": prepared.seed,
            "the store's program": subject.binary.sha256,
            "what the store is told": subject.system.effective(prepared.plan, subject.options),
            "the cluster": {node.name: node.address for node in prepared.plan.nodes},
        }
        kept = cls(bundle / DIRECTORY / subject.system.name, identity)
        # The load of a mix leaves a bucket that is not the prefilled one.
        kept._take_over(may_have_measured=study.load is None)
        return kept

    @property
    def nodes(self) -> Path:
        """The nodes' directories: a lab's ``keep``."""
        return self.directory / "nodes"

    @property
    def is_of_use(self) -> bool:
        """Did it come so far that a later attempt would go on with it?"""
        return (self.directory / _STATE).exists()

    @property
    def is_fresh(self) -> bool:
        """Has nobody written any data yet?"""
        return not self.records

    @property
    def records(self) -> list[Path]:
        """What earlier attempts left of acknowledged objects, in their order."""
        return sorted(self.directory.glob("filled-*.raw"), key=_number)

    def next_records(self) -> Path:
        """Return where this attempt's go."""
        numbers = [_number(path) for path in self.records]
        return self.directory / f"filled-{max(numbers, default=0) + 1}.raw"

    def note(self, state: State) -> None:
        """Write down how far it came."""
        self.state = state
        if state == "measuring":
            self.attempts += 1
        self.directory.mkdir(parents=True, exist_ok=True)
        document = {"state": state, "attempts": self.attempts, "identity": self._identity}
        partial = self.directory / f".{_STATE}.partial"
        partial.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
        os.replace(partial, self.directory / _STATE)

    def forget(self, why: str | None = None) -> None:
        """Throw the data away, and begin anew where anything follows."""
        self.why_anew, self.state, self.attempts = why, "filling", 0
        (self.directory / _STATE).unlink(missing_ok=True)  # first: without it the rest is nothing
        if self.directory.exists():
            shutil.rmtree(self.directory)

    def remove(self) -> None:
        """Throw the data away: the system's part is complete."""
        self.forget()
        above = self.directory.parent
        if above.exists() and not any(above.iterdir()):
            above.rmdir()

    def _take_over(self, *, may_have_measured: bool) -> None:
        try:
            found = json.loads((self.directory / _STATE).read_text("utf-8"))
            identity, state, attempts = found["identity"], found["state"], found["attempts"]
        except (FileNotFoundError, ValueError, KeyError):
            self.forget()  # what is there was being removed, or never became anything
            return
        differs = [key for key in self._identity if identity.get(key) != self._identity[key]]
        if differs:
            self.forget(f"{differs[0]} has changed")
        elif state == "measuring" and not may_have_measured:
            self.forget("its load had begun, which leaves other objects than the prefill's")
        else:
            self.state, self.attempts = state, attempts


def move_kept(from_bundle: Path, to_bundle: Path) -> None:
    """Hand what an attempt kept to the next one; both bundles are on one file system."""
    source, target = from_bundle / DIRECTORY, to_bundle / DIRECTORY
    if source.exists():
        source.rename(target)


def kept_bytes(bundle: Path) -> int:
    """Return how much disk space the kept data of a bundle take."""
    total = 0
    for directory, _, files in os.walk(bundle / DIRECTORY):
        for name in files:
            try:
                total += os.lstat(Path(directory, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


def _number(path: Path) -> int:
    digits = path.stem.rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0
