"""Runs a study: a fresh lab and cluster for each system, one request after another, a bundle."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from wanlat.bundle.write import BundleWriter, is_full, is_nearly_full, now_iso
from wanlat.experiments import machine_facts
from wanlat.experiments.load.run import LoadRun
from wanlat.experiments.prefill.kept import move_kept
from wanlat.experiments.prepared import (
    CaptureWanted,
    Prepared,
    Subject,
    check_study_options,
    prepare,
)
from wanlat.experiments.reclaim.run import ReclaimRun
from wanlat.experiments.resumed import Earlier, Unfinished, go_on
from wanlat.experiments.system_run import Outcome, Record, Report, SystemRun, requested_rtt_ms
from wanlat.experiments.visits.record import VisitsRecord
from wanlat.experiments.visits.run import VisitsRun
from wanlat.topologies.errors import DiskFull, MachineError, WanlatError

Parts = Callable[[Prepared, Record, Report], Sequence[SystemRun]]

__all__ = [
    "CaptureWanted",
    "Outcome",
    "Prepared",
    "Report",
    "check_study_options",
    "prepare",
    "requested",
    "requested_rtt_ms",
    "run",
]


def run(
    prepared: Prepared,
    report: Report,
    *,
    parts: Parts | None = None,
    unfinished: Unfinished | None = None,
    earlier_attempt: Path | None = None,
) -> Outcome:
    """Measure every system of a study and write the bundle.

    However it ends, the bundle holds the samples taken so far and says how it ended. ``parts``
    makes each system's part of the run; without it the study says which kind. ``unfinished`` is the
    bundle to go on with, in its place; ``earlier_attempt`` one beside it, from which data that
    outlive an attempt are taken over. Raises UserError when the bundle's directory cannot be
    written (before anything slow starts).
    """
    manifest = _manifest(prepared)
    if unfinished is None:
        earlier = Earlier(BundleWriter.create(prepared.directory, manifest))
    else:
        earlier = go_on(unfinished.directory, manifest)
    if earlier_attempt is not None:
        move_kept(earlier_attempt, prepared.directory)
    return _Run(prepared, report, earlier, parts or _runs).run()


class _Run:
    def __init__(self, prepared: Prepared, report: Report, earlier: Earlier, parts: Parts) -> None:
        self._report = report
        self._bundle = bundle = earlier.writer
        self._completed = earlier.completed
        self._outcome = outcome = Outcome(prepared.directory, warnings=list(earlier.warnings))
        for subject in prepared.subjects:
            samples = earlier.samples(subject.system.name)
            outcome.planned += subject.asked.measured() if samples is None else samples
            outcome.measured += samples or 0
        wanted = prepared.capture
        self._captures = wanted.store(prepared.directory) if wanted is not None else None
        if self._captures is not None:
            for entry in earlier.captures:
                self._captures.take_over(entry)
        record = Record(bundle, outcome, self._captures, list(earlier.calibrations), earlier.visits)
        left = [each for each in prepared.subjects if each.system.name not in earlier.completed]
        if prepared.study.round_trips is not None:
            outcome.warnings += prepared.study.round_trips.doubts()
        self._parts = parts(replace(prepared, subjects=tuple(left)), record, report)

    def run(self) -> Outcome:
        outcome = self._outcome
        try:
            for part in self._parts:
                part.measure()
                self._completed.append(part.name)
                self._bundle.write_manifest(completed=self._completed, **self._recorded())
            outcome.status = "complete"
        except KeyboardInterrupt:
            outcome.status, outcome.reason = "interrupted", "interrupted by the user"
        except WanlatError as error:
            self._failed(str(error), is_full=isinstance(error, DiskFull))
        except OSError as error:
            if not is_full(error):
                self._bundle.close("failed", f"{type(error).__name__}: {error}")
                raise
            self._failed(f"{error.filename or 'A file'} cannot be written: {error.strerror}.", True)
        except BaseException as error:
            self._bundle.close("failed", f"{type(error).__name__}: {error}")
            raise
        self._close()
        return outcome

    def _recorded(self) -> dict[str, Any]:
        """Return what the manifest says of packets while a run lasts, to go on with."""
        return {"recorded": self._captures.files} if self._captures is not None else {}

    def _failed(self, reason: str, is_full: bool) -> None:
        """Note why it failed; and where a full disk is likely to be behind it, that it is full."""
        outcome, directory = self._outcome, self._bundle.directory
        outcome.status, outcome.reason = "failed", reason
        outcome.is_disk_full = is_full or is_nearly_full(directory)
        if outcome.is_disk_full:
            self._bundle.make_room()
        if outcome.is_disk_full and not is_full:
            outcome.reason += f" The disk that {directory.absolute()} lies on is full."

    def _close(self) -> None:
        """Write how it ended. Where not even that can be written, the outcome says so."""
        outcome, changes = self._outcome, dict[str, Any]()
        try:
            self._bundle.manifest.pop("recorded", None)  # `capture` says it
            if self._captures is not None:
                self._report("making the table of packets", 0, None)
                changes["capture"] = self._captures.finish()
                outcome.warnings += self._captures.remarks()
            changes["warnings"] = outcome.warnings
            self._bundle.close(outcome.status, outcome.reason, **changes)
        except (MachineError, OSError) as error:
            outcome.status, outcome.is_disk_full = "failed", isinstance(error, DiskFull)
            outcome.reason = outcome.reason or str(error)
            outcome.warnings.append(
                f"{self._bundle.directory} does not say how it ended: it could not be written."
            )


def _runs(prepared: Prepared, record: Record, report: Report) -> list[SystemRun]:
    study = prepared.study
    spec = study.round_trips
    if spec is not None:
        visits = VisitsRecord(record.bundle, earlier=record.visits)
        visits.take_over_time()
        return [
            VisitsRun(prepared, subject, record, report, spec, visits)
            for subject in prepared.subjects
        ]
    kind: type[SystemRun] = SystemRun
    if study.load is not None:
        kind = LoadRun
    elif study.reclaim is not None:
        kind = ReclaimRun
    return [kind(prepared, subject, record, report) for subject in prepared.subjects]


def requested(backend: str | None, capture: CaptureWanted | None) -> dict[str, Any]:
    """Return what the command line asked for that no study says: to go on with it the same way."""
    return {"backend": backend, "capture": asdict(capture) if capture is not None else None}


def _manifest(prepared: Prepared) -> dict[str, Any]:
    site = {node.name: node.site for node in prepared.plan.nodes}
    return {
        "kind": "study",
        "status": "running",
        "reason": None,
        "warnings": [],
        "study": prepared.study.to_dict(),
        "topology": prepared.topology.to_dict(),
        "seed": prepared.seed,
        "requested": requested(prepared.backend, prepared.capture),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "started": now_iso(),
        "ended": None,
        **machine_facts.collect(),
        "backend": None,
        "storage": prepared.study.storage,
        "client": {"node": prepared.client, "site": site[prepared.client]},
        "target": {"node": prepared.target, "site": site[prepared.target]},
        "systems": [_of_system(prepared, subject) for subject in prepared.subjects],
        "tcp": None,
    }


def _of_system(prepared: Prepared, subject: Subject) -> dict[str, Any]:
    said: dict[str, Any] = {
        "name": subject.system.name,
        "version": subject.binary.version,
        "label": subject.binary.label,
        "sha256": subject.binary.sha256,
        "api": subject.asked.api,
        "endpoints": subject.asked.names,
        "options": subject.system.effective(prepared.plan, subject.options),
    }
    if subject.binary.beside:
        said["beside"] = [
            {"name": each.name, "version": each.version, "sha256": each.sha256}
            for each in subject.binary.beside
        ]
    said["least_round_trips"] = _least(prepared, subject)
    if promised := _promised(prepared, subject):
        said["promised_round_trips"] = promised
    return said


def _promised(prepared: Prepared, subject: Subject) -> list[dict[str, Any]]:
    """Return what the system's own protocol takes, of all that is asked and where it is known."""
    plan, client, target = prepared.plan, prepared.client, prepared.target
    more = float(plan.node(client).site != plan.node(target).site)
    found = []
    for endpoint, placement in subject.asked.turns():
        number = subject.system.promised_round_trips(
            plan, subject.options, target, endpoint, placement
        )
        if number is not None:
            found.append(
                {"endpoint": endpoint, "placement": placement, "round_trips": number + more}
            )
    return found


def _least(prepared: Prepared, subject: Subject) -> list[dict[str, Any]]:
    """Return what no store could beat with replicas at the same places, of all that is asked."""
    plan, target = prepared.plan, prepared.target
    found = []
    for endpoint, placement in subject.asked.turns():
        least = subject.system.least_round_trips(plan, subject.options, target, endpoint, placement)
        if least is not None:
            least = least.from_client(plan, prepared.client, target)
        found.append(
            {
                "endpoint": endpoint,
                "placement": placement,
                "round_trips": least.round_trips if least else None,
                "why": least.why if least else "nothing is known of where its replicas are",
            }
        )
    return found
