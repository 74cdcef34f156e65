"""A bundle that a run left unfinished, to go on with: what of it stays, and what is done again.

A study of several systems is gone on with system by system. What systems left that completed
stays; what others left is measured anew. The whole bundle as it was is kept in ``attempt-1``,
``attempt-2``, …, where it is hard links and takes no room of its own.

Every step can be done again: a run that is killed here leaves a bundle that can be gone on with.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from wanlat.bundle.write import BundleWriter, Lock, now_iso, write_json
from wanlat.experiments.load.table import keep_rows as keep_load
from wanlat.experiments.prefill.kept import DIRECTORY as KEPT
from wanlat.topologies.errors import UserError
from wanlat.topologies.wording import listing

_NOT_KEPT_TWICE = (KEPT, ".reserve")
_DERIVED = ("summary.json", "charts", "packets.parquet", "chains.json")
_KINDS = ("study", "sweep")
_LOAD = "load"
"""A table that never was lines."""


@dataclass
class Unfinished:
    """A bundle, and what its manifest says."""

    directory: Path
    manifest: dict[str, Any]

    @property
    def is_sweep(self) -> bool:
        """Whether it is of several points."""
        return bool(self.manifest["kind"] == "sweep")

    @property
    def is_complete(self) -> bool:
        """Whether there is nothing left to do.

        A point of a sweep whose directory was removed is to be measured again.
        """
        is_through = self.manifest.get("status") == "complete"
        if not (is_through and self.is_sweep):
            return is_through
        points = _json(self.directory / "points.json") or {"points": []}
        return all((self.directory / each["directory"]).exists() for each in points["points"])

    @property
    def completed(self) -> list[str]:
        """The systems that are through."""
        return list(self.manifest.get("completed", []))


def read_unfinished(directory: Path) -> Unfinished:
    """Return a bundle to go on with. Raises UserError where there is none, or not of that kind."""
    path = directory / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"--resume {directory}: there is no bundle: it has no manifest.json."
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"--resume {directory}: {path} cannot be read: {error}.") from error
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if kind not in _KINDS or not isinstance(manifest.get("study"), dict):
        raise UserError(
            f"--resume {directory}: that is a bundle of kind {kind}; only studies and sweeps can "
            "be gone on with."
        )
    return Unfinished(directory, manifest)


@dataclass
class Earlier:
    """What of earlier attempts stays in a bundle that is gone on with."""

    writer: BundleWriter
    completed: list[str] = field(default_factory=list)
    calibrations: list[dict[str, Any]] = field(default_factory=list)
    visits: list[dict[str, Any]] = field(default_factory=list)
    captures: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    measured: Counter[str] = field(default_factory=Counter)
    """How many measured samples of each system stay."""

    def samples(self, system: str) -> int | None:
        """Return how many measured samples of a system there are; None where it is to be run."""
        return self.measured[system] if system in self.completed else None


def go_on(directory: Path, manifest: Mapping[str, Any]) -> Earlier:
    """Put aside what an unfinished bundle of systems has, and open it again.

    ``manifest`` is that of the new attempt. Raises UserError when another run is writing to it, or
    has completed it meanwhile.
    """
    try:
        lock = Lock(directory)
        unfinished = read_unfinished(directory)
        old, completed = unfinished.manifest, unfinished.completed
        if unfinished.is_complete:
            lock.release()
            raise UserError(f"{directory} is complete: there is nothing left to measure.")
        _put_aside(directory)
        measured = _keep_rows(directory, completed)
        keep_load(directory, lambda system: system in completed)
        calibrations = _keep_calibration(directory, completed)
        visits = _keep_visits(directory, completed)
        captures = _keep_files(directory, completed, old)
    except OSError as error:
        raise UserError(f"The bundle {directory} cannot be written: {error.strerror}.") from error
    warnings = [each for each in old.get("warnings", []) if _is_of(each, completed)]
    joined = _joined(old, manifest, completed) | {"warnings": warnings, "recorded": captures}
    writer = BundleWriter.reopen(directory, joined, lock)
    writer.event("resumed", listing(completed) if completed else "")
    return Earlier(writer, completed, calibrations, visits, captures, warnings, measured)


def _joined(
    old: Mapping[str, Any], new: Mapping[str, Any], completed: Sequence[str]
) -> dict[str, Any]:
    """Return the manifest of a bundle that is gone on with."""
    known = {each["name"]: each for each in old["systems"] if each["name"] in completed}
    systems = [known.get(each["name"], each) for each in new["systems"]]
    joined = {
        **new,
        "systems": systems,
        "started": old["started"],
        "completed": list(completed),
        "attempts": old.get("attempts", 1) + 1,
        "resumed": [*old.get("resumed", []), now_iso()],
    }
    if "budget" in old:
        joined["budget"] = [each for each in old["budget"] if each["system"] in completed]
    resources = old.get("resources")
    if isinstance(resources, dict) and "systems" in resources:
        kept = {name: each for name, each in resources["systems"].items() if name in completed}
        if kept:
            joined["resources"] = {**resources, "systems": kept}
    if isinstance(old.get("load"), dict):
        joined["load"] = {name: each for name, each in old["load"].items() if name in completed}
    if isinstance(old.get("round_trips"), dict):
        of = old["round_trips"]
        joined["round_trips"] = {
            **of,
            "systems": [each for each in of["systems"] if each["system"] in completed],
        }
    return joined


def _put_aside(directory: Path) -> None:
    """Keep everything as it is in a directory of its own, by hard links."""
    number = 1
    while (aside := directory / f"attempt-{number}").exists():
        number += 1
    partial = directory / ".attempt.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for entry in sorted(directory.iterdir()):
        if entry.name in _NOT_KEPT_TWICE or entry.name.startswith((".", "attempt-")):
            continue
        if entry.is_dir():
            shutil.copytree(entry, partial / entry.name, copy_function=_link, symlinks=True)
        else:
            _link(str(entry), str(partial / entry.name))
    partial.rename(aside)
    for name in _DERIVED:
        entry = directory / name
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # a file system without
        shutil.copy2(source, target)
    return target


def _keep_rows(directory: Path, completed: Sequence[str]) -> Counter[str]:
    """Leave in every table the rows of systems that are through, as lines.

    Return how many measured samples of each there are.
    """
    measured = Counter[str]()
    raw = {path.stem for path in directory.glob("*.jsonl")}
    tables = {path.stem for path in directory.glob("*.parquet")} - {_LOAD}
    for name in sorted(raw | tables):
        lines, table = directory / f"{name}.jsonl", directory / f"{name}.parquet"
        rows = _lines(lines) if lines.exists() else _rows(table)
        kept = _of_completed(rows, completed) if name == "events" else _of(rows, completed)
        partial = directory / f".{name}.jsonl.partial"
        with partial.open("w", encoding="utf-8") as stream:
            for row in kept:
                if name == "samples" and row["phase"] == "measure":
                    measured[row["system"]] += 1
                stream.write(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n")
        os.replace(partial, lines)
        table.unlink(missing_ok=True)
    return measured


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            with suppress(ValueError):  # the last one of a run that was killed
                yield json.loads(line)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches():
            yield from batch.to_pylist()


def _of(rows: Iterator[dict[str, Any]], completed: Sequence[str]) -> Iterator[dict[str, Any]]:
    return (row for row in rows if row.get("system") in completed)


def _of_completed(
    rows: Iterator[dict[str, Any]], completed: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the events between the beginning of a completed system's lab and the next one's."""
    keeps = True
    for row in rows:
        if row["kind"] == "lab up":
            keeps = row["subject"] in completed
        if keeps:
            yield row


def _keep_calibration(directory: Path, completed: Sequence[str]) -> list[dict[str, Any]]:
    path = directory / "calibration.json"
    document = _json(path)
    if document is None:
        return []
    pairs = [each for each in document["pairs"] if each.get("system") in completed]
    if not pairs:
        path.unlink()
        return []
    passed = all(each["verdict"] == "pass" for each in pairs)
    kept = document | {"pairs": pairs, "verdict": "pass" if passed else "fail"}
    write_json(path, kept)
    return [kept]


def _keep_visits(directory: Path, completed: Sequence[str]) -> list[dict[str, Any]]:
    path = directory / "visits.json"
    document = _json(path)
    if document is None:
        return []
    visits = [each for each in document["visits"] if each["system"] in completed]
    write_json(path, {"visits": visits})
    return visits


def _keep_files(
    directory: Path, completed: Sequence[str], old: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Remove the logs and the packets of systems that begin anew; return whose packets stay."""
    systems = [each["name"] for each in old["systems"]]
    for path in [*(directory / "logs").glob("*"), *(directory / "capture").glob("*")]:
        owner = max((name for name in systems if path.name.startswith(name)), key=len, default=None)
        if owner is not None and owner not in completed:
            path.unlink()
    capture = old.get("capture")
    files = capture["files"] if isinstance(capture, dict) else []
    known = {each["system"]: each for each in files}
    return [
        known.get(name)
        or {
            "file": f"{name}.pcapng",
            "system": name,
            "packets": None,
            "missing": None,
            "ended": None,
        }
        for name in completed
        if (directory / "capture" / f"{name}.pcapng").exists()
    ]


def _is_of(warning: str, completed: Sequence[str]) -> bool:
    return any(warning.startswith(f"{name}: ") for name in completed)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
