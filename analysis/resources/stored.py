"""Disk usage per stored byte: what the directories of all nodes grew by, over what was stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, NamedTuple

from wanlat.analysis.calibration import sites_by_node
from wanlat.analysis.drill.events import Event
from wanlat.analysis.resources.read import manifest_entry, prefill_entry, reclaim_entry
from wanlat.analysis.resources.usage import total_growth
from wanlat.analysis.resources.windows import LOADED, Window

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.bundle import Bundle


@dataclass(frozen=True)
class PerStoredByte:
    """What stored bytes take: `disk_bytes` is what the directories of all nodes grew by.

    `stated_copies` is what the system's options say that a byte must take, in words (`scheme`) and
    as a number: 3 of three replicas, 1.5 of 4 + 2 erasure coding; None where they do not say.
    `written_bytes_per_put_byte` is what all nodes wrote to disks, over the bytes that were put; NaN
    where that is not known, as on tmpfs.
    """

    objects: int
    stored_bytes: int
    disk_bytes: int
    disk_bytes_per_stored_byte: float
    written_bytes_per_put_byte: float
    stated_copies: float | None
    scheme: str | None


class _Stored(NamedTuple):
    """What was stored, and the instants of the samples before and after."""

    objects: int
    stored_bytes: int
    put_bytes: int
    begin_ns: int
    end_ns: int


def per_stored_byte(
    bundle: Bundle,
    system: str,
    rows: pd.DataFrame,
    requests: pd.DataFrame,
    events: Sequence[Event],
) -> PerStoredByte | None:
    """Disk usage of what was stored; None where that is not known, or nothing was.

    Over a prefill where there is one: from before it to after it nothing else was written. Else
    over the whole run, if every write and removal in it was acknowledged.
    """
    stored = _filled(bundle, system, rows, events)
    if stored is None and (requests.empty or not bundle.is_load):
        stored = _in_run(bundle, system, rows)
    if stored is None or stored.stored_bytes <= 0:
        return None
    grown = _grown(rows, stored.begin_ns, stored.end_ns)
    if grown is None:
        return None
    span = Window(LOADED, stored.begin_ns, stored.end_ns)
    written = total_growth(rows, ("node",), (span,), "written_bytes")
    is_known = written > 0 and stored.put_bytes > 0
    return PerStoredByte(
        stored.objects,
        stored.stored_bytes,
        grown,
        grown / stored.stored_bytes,
        written / stored.put_bytes if is_known else nan,
        *_scheme(bundle, system),
    )


def _in_run(bundle: Bundle, system: str, rows: pd.DataFrame) -> _Stored | None:
    entry = manifest_entry(bundle.manifest, system)
    if not entry.get("stored_is_known"):
        return None
    return _Stored(
        int(entry["stored_objects"]),
        int(entry["stored_bytes"]),
        int(entry["put_bytes"]),
        int(rows["t_ns"].iloc[0]),
        int(rows["t_ns"].iloc[-1]),
    )


def _filled(
    bundle: Bundle, system: str, rows: pd.DataFrame, events: Sequence[Event]
) -> _Stored | None:
    reclaimed = reclaim_entry(bundle.directory, system)
    if reclaimed is not None and reclaimed.get("settled_ns"):
        objects = int(reclaimed["objects"])
        stored = objects * int(reclaimed["object_bytes"])
        begin_ns, end_ns = int(reclaimed["filled_ns"][0]), int(reclaimed["settled_ns"])
        return _Stored(objects, stored, stored, begin_ns, end_ns)
    filled = prefill_entry(bundle.directory, system)
    if filled is None:
        return None
    own = [event for event in events if (event.kind, event.subject) == ("prefill", system)]
    begins = [event.t_ns for event in own if event.facts.get("what") == "begins"]
    ends = [event.t_ns for event in own if event.facts.get("what") == "ends"]
    if not begins or not ends:
        return None
    nodes = rows[(rows["kind"] == "node") & rows["space_bytes"].notna()]
    # Scanning a directory takes time: a scan that was begun before the end may have missed what was
    # written since. (Bundles without that column have only when it was over.)
    begun_ns = nodes["space_began_ns"].fillna(nodes["t_ns"])
    after = nodes[begun_ns >= ends[-1]].groupby("subject")["t_ns"].min()
    if len(after) < nodes["subject"].nunique():
        return None
    objects = int(filled["objects"]) * max(1, len(filled.get("buckets") or ()))
    stored = objects * int(filled["object_bytes"])
    return _Stored(objects, stored, stored, begins[-1], int(after.max()))


def _grown(rows: pd.DataFrame, begin_ns: int, end_ns: int) -> int | None:
    """By how much the directories of all nodes grew; None where one was not scanned."""
    total = 0.0
    for _, own in rows[rows["kind"] == "node"].groupby("subject"):
        known = own[own["space_bytes"].notna()]
        before = known[known["t_ns"] <= begin_ns]
        after = known[known["t_ns"] <= end_ns]
        if before.empty or after.empty:
            return None
        total += after["space_bytes"].iloc[-1] - before["space_bytes"].iloc[-1]
    return round(total)


def _scheme(bundle: Bundle, system: str) -> tuple[float | None, str | None]:
    """What the options in effect say that a byte must take, as a number and in words."""
    entries = bundle.manifest.get("systems")
    listed = entries if isinstance(entries, list) else []
    own = next((e for e in listed if isinstance(e, Mapping) and e.get("name") == system), {})
    options = own.get("options")
    if not isinstance(options, Mapping):
        return None, None
    drives, parity = options.get("drives_per_set"), options.get("parity")
    if isinstance(drives, int) and isinstance(parity, int) and drives > parity:
        if drives == 1:
            return 1.0, "one drive"
        data = drives - parity
        return drives / data, f"erasure coding {data} + {parity}"
    copies = options.get("replication_factor")
    if isinstance(copies, int):
        return float(copies), "one copy" if copies == 1 else f"{copies} replicas"
    # The reference store has a replica on each node.
    nodes = len(sites_by_node(bundle.manifest.get("topology"))) if system == "quorum" else 0
    return (float(nodes), f"{nodes} replicas") if nodes else (None, None)
