"""A bundle of kind "drill" made into a `Drill`, however far the drill got."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wanlat.analysis.claims import Verdict
from wanlat.analysis.figures.drill.lacking import lacking_of
from wanlat.analysis.figures.drill.outages import RECOVERY, client_of, recovery_of_all
from wanlat.analysis.figures.drill.requests import (
    OPERATIONS,
    PHASES,
    Event,
    by_endpoint,
    happened,
    phases_of,
    quantity,
    read_events,
    requests_of,
)
from wanlat.analysis.figures.drill.verdicts import (
    claims_of,
    durability_of,
    read_ledger,
    read_verification,
)
from wanlat.analysis.names import count, series_labels
from wanlat.bundle import documents
from wanlat.bundle.documents import NOT_SENT
from wanlat.bundle.errors import BundleError
from wanlat.bundle.outcomes import are_too_many, why_too_many
from wanlat.bundle.run import Run, Series, how_ended, read_run

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]

ENDED = {"running": "killed", "interrupted": "interrupted", "failed": "failed"}
"""How a drill ended that is not complete."""
_WRONG_BYTES = ("checksum mismatch", "length mismatch")
"""The probe's words where the bytes of an answer are not those that were written."""


@dataclass(frozen=True)
class Drill:
    """One drill on one system.

    `document` is the block `drill` of summary.json, of which docs/reference/bundle.md has the keys
    and docs/reference/statistics.md the definitions; ``drill[KEY]`` is short for an entry of it.
    Instants are seconds since the origin, the planned begin of the phase `before`: `origin_ns` on
    CLOCK_MONOTONIC, None where nothing is known of it.

    `requests` has one row a due request of the three phases, in order of due time: `client`,
    `operation` (read, write, list), `endpoint`, `key`, `phase`, `outcome` (ok, fail, unknown),
    `error`, `sent` (bool; not: it expired, or this machine could not send it), `due_s`, `start_s`
    (NaN if not sent), `end_s` (when it was answered or given up; NaN if unknown), `latency_ms`
    (end − due), `from_start_ms` (end − start), `late` (the machine made its network later than is
    accepted).
    """

    bundle: Run
    document: Row
    requests: pd.DataFrame
    origin_ns: int | None

    def __getitem__(self, key: str) -> Any:
        """An entry of the document."""
        return self.document[key]

    @property
    def series(self) -> Series:
        """The version of the system."""
        return Series(self["system"], self["version"])

    @property
    def label(self) -> str:
        """What it is called."""
        return series_labels([self.series], self.bundle.titles)[self.series]

    @property
    def clients(self) -> list[tuple[Row, str, Row]]:
        """Each client that sent requests, "read", "write" or "list", and the figures of these."""
        both = [
            (client, one, client.get(f"{one}s")) for client in self["clients"] for one in OPERATIONS
        ]
        return [entry for entry in both if entry[2] is not None]

    @property
    def longest_outage(self) -> Row | None:
        """The outage that lasted longest, of whichever client; the first of equals.

        One that began before any fault is no fault's work and does not count.
        """
        outages = [outage for outage in self["outages"] if not outage["before_fault"]]
        return max(outages, key=lambda outage: outage["duration_s"], default=None)

    def rows(self, client: str, operation: str) -> pd.DataFrame:
        """The requests of one client's reads, or its writes."""
        every = self.requests
        return every[(every["client"] == client) & (every["operation"] == operation)]


def read_drill(bundle: Run | Path | str) -> Drill:
    """Read the drill in `bundle`; BundleError if it is none or is damaged.

    One that was killed at any moment can be read: what it did not get to is None or empty.
    """
    if not isinstance(bundle, Run):
        bundle = read_run(bundle)
    if not bundle.is_drill:
        raise BundleError(
            f"{bundle.directory} is no bundle of a drill; `wanlat drill run` makes them."
        )
    if "drill" not in bundle.derived:
        bundle.derived["drill"] = _read(bundle)
    drill: Drill = bundle.derived["drill"]
    return drill


def how_it_ended(bundle: Run) -> str | None:
    """How the drill ended, if it did not end as it should."""
    how = how_ended(bundle.status, bundle.directory)
    return f"The drill {how}" if how else None


def fault_label(fault: Row) -> str:
    """A fault for people: ``slow n2, +200 ms``."""
    detail = f", {fault['detail']}" if fault["detail"] else ""
    return f"{fault['kind']} {fault['subject']}{detail}"


def _read(bundle: Run) -> Drill:
    manifest = bundle.manifest
    spec = manifest.drill or documents.Drill()
    events = read_events(bundle.directory)
    origin_ns = _origin_ns(manifest, bundle.samples, events)
    zero_ns = origin_ns or 0
    requests = requests_of(bundle.samples, zero_ns)
    # Phases are noted by their plan, so they are no instants of which anything is known.
    known_s = [event.at_s(zero_ns) for event in events if event.kind != "phase"]
    known_s += [*requests["due_s"], *requests["end_s"].dropna()]
    phases = phases_of(
        requests,
        {event.subject: event.at_s(zero_ns) for event in events if event.kind == "phase"},
        {name: quantity(length) for name, length in spec.phases.items()},
        max(known_s, default=None),
        was_cut_short=bundle.status in ("interrupted", "failed"),
    )
    until_s = max((phase["end_s"] for phase in phases if phase["end_s"] is not None), default=0.0)
    events_of = happened(events, zero_ns)
    places = manifest.clients
    interval_s, deadline_s = quantity(spec.interval), quantity(spec.deadline)
    interval_ms = None if interval_s is None else interval_s * 1000
    cells: dict[tuple[str, str], Row] = {}
    outages: list[Row] = []
    slow: list[Row] = []
    for (client, operation), rows in requests.groupby(["client", "operation"]):
        subject = {"client": client, "operation": operation}
        figures, *disturbances = client_of(rows, events_of["faults"], interval_ms, until_s)
        cells[str(client), str(operation)] = figures
        for every, own in zip((outages, slow), disturbances, strict=True):
            every += [{**subject, **entry} for entry in own]
    of_all = list(cells.values())
    recovery = dict(zip(RECOVERY, recovery_of_all(of_all), strict=True))
    keys = read_ledger(bundle.directory)
    written = requests[(requests["operation"] == "write") & requests["sent"]]["key"].dropna()
    durability = durability_of(
        keys, read_verification(bundle.directory), int((~written.isin(list(keys))).sum())
    )
    lacking = lacking_of(bundle, requests, events)
    nodes = {name: place.node for name, place in places.items()}
    series = bundle.systems[0] if bundle.systems else Series("", "")
    reached = [event.subject for event in events if event.kind == "stage"]
    errors = requests.loc[requests["operation"] == "read", "error"].fillna("").astype(str)
    longest_s = max((client["longest_outage_s"] for client in of_all), default=0.0)
    document = {
        "name": bundle.study,
        "system": series.system,
        "phases": phases,
        # Of a drill that sent nothing, 0 would say that nobody was out.
        "longest_outage_s": None if requests.empty else longest_s,
        "recovery_s": recovery["recovery_s"],
        "durability": durability,
        "claims": claims_of(manifest.claims, requests, phases, nodes, durability, lacking),
        "lacking": lacking,
        "passed": False,
        "failures": [],
        **recovery,
        "version": series.version,
        "options": manifest.systems[0].options if manifest.systems else {},
        "topology": bundle.topology,
        "description": spec.description or "",
        "seed": manifest.seed,
        "scale": float(spec.scale or 1.0),
        "interval_ms": interval_ms,
        "deadline_ms": None if deadline_s is None else deadline_s * 1000,
        "stated_time_s": manifest.stated_time_s,
        "started": manifest.started,
        "status": bundle.status,
        "reason": manifest.reason,
        # Of a killed drill an event may name a stage that the manifest does not.
        "reached": reached[-1] if reached else manifest.reached,
        "roles": {name: list(nodes) for name, nodes in manifest.roles.items()},
        "clients": [
            {
                "client": name,
                **{key: getattr(place, key) for key in ("node", "site", "target")},
                **{
                    f"{one}s": cells.get((name, one))
                    for one in OPERATIONS
                    if one != "list" or (name, one) in cells
                },
            }
            for name, place in places.items()
        ],
        "endpoints": by_endpoint(requests),
        NOT_SENT: int((requests["outcome"] == NOT_SENT).sum()),
        "late_requests": int(requests["late"].sum()),
        "outages": sorted(outages, key=lambda outage: outage["begin_s"]),
        "slow": slow,
        **events_of,
        "wrong_reads": int(errors.str.startswith(_WRONG_BYTES).sum()),
    }
    document["failures"] = list(_failures(document, bundle, requests))
    document["passed"] = not document["failures"]
    return Drill(bundle, _plain(document), requests, origin_ns)


def _failures(document: Row, bundle: Run, requests: pd.DataFrame) -> Iterator[str]:
    """Everything that did not hold, a sentence each, the worst first.

    It is what `wanlat drill run` ends with 1 for. Claims that are not decided fail nothing.
    """
    durability, reason = document["durability"], document["reason"]
    if (how := how_it_ended(bundle)) is not None:
        yield f"{how}{f': {reason.rstrip(chr(46))}' if reason else ''}."
    if durability["verdict"] != "pass":
        yield f"Durability is {durability['verdict']}: {durability['why']}."
    for text in document["lacking"]:
        yield f"Evidence is lacking: {text}."
    if are_too_many(document[NOT_SENT], len(requests)):
        errors = requests.loc[requests["outcome"] == NOT_SENT, "error"]
        yield why_too_many(document[NOT_SENT], len(requests), str(errors.iloc[-1]))
    if wrong := document["wrong_reads"]:
        yield f"{count(wrong, 'read')} answered with other bytes than were written."
    if missing := durability["unledgered"]:
        yield f"{count(missing, 'write')} sent that the ledger does not have."
    for claim in document["claims"]:
        if claim["verdict"] == Verdict.DOES_NOT_HOLD:
            yield f"“{claim['claim']}” does not hold: {claim['evidence']}."
    if recorded := bundle.manifest.failures:
        yield from recorded
        return
    for again in document["recalibrations"]:
        if again["verdict"] != "pass":
            yield f"{again['subject']} is not what it was before its fault."


def _origin_ns(
    manifest: documents.Manifest, samples: pd.DataFrame, events: Sequence[Event]
) -> int | None:
    """The begin of `before`: as noted, else as planned, else when the first request was due."""
    noted = [event.t_ns for event in events if (event.kind, event.subject) == ("phase", PHASES[0])]
    due_ns = samples.loc[samples["phase"] == PHASES[0], "due_ns"].dropna()
    known = [*noted[-1:], manifest.origin_ns, *([int(due_ns.min())] if len(due_ns) else [])]
    known += [event.t_ns for event in events[:1]]
    return next((t_ns for t_ns in known if isinstance(t_ns, int)), None)


def _plain(value: Any) -> Any:
    """A document as JSON has it: times to the nanosecond, shares to six digits."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
