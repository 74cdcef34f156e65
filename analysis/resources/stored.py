"""What stored bytes cost: disk space of all nodes over bytes that are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wanlat.analysis.calibration import sites_by_node
from wanlat.analysis.resources.asked import prefill_entry, reclaim_entry
from wanlat.analysis.resources.model import StoredCost

if TYPE_CHECKING:
    import pandas as pd

    from wanlat.analysis.bundle import Bundle


def stored_of(
    bundle: Bundle, system: str, rows: pd.DataFrame, requests: pd.DataFrame
) -> StoredCost | None:
    """What was stored, and by how much the nodes' directories grew for it.

    Over a prefill where there is one: from before it to after it nothing else was written. Else
    over the whole run, if every write and removal in it was acknowledged. None where that is not
    known, or nothing was stored.
    """
    said = bundle.manifest.get("resources")
    entry = said.get("systems", {}).get(system, {}) if isinstance(said, Mapping) else {}
    span = _filled(bundle, system, rows)
    if span is not None:
        objects, stored, begin_ns, end_ns = span
        put, of_prefill = stored, True
    elif not requests.empty and bundle.is_load:
        return None
    else:
        if not entry.get("stored_is_known"):
            return None
        objects, stored = int(entry["stored_objects"]), int(entry["stored_bytes"])
        put, of_prefill = int(entry["put_bytes"]), False
        begin_ns, end_ns = int(rows["t_ns"].iloc[0]), int(rows["t_ns"].iloc[-1])
    grown = _grown(rows, begin_ns, end_ns)
    if grown is None or stored <= 0:
        return None
    copies, scheme = _scheme(bundle, system)
    written = _written(rows, begin_ns, end_ns)
    return StoredCost(
        objects=objects,
        stored_bytes=stored,
        disk_bytes=grown,
        copies=copies,
        scheme=scheme,
        written=written / put if written and put else None,
        of_prefill=of_prefill,
    )


def _filled(bundle: Bundle, system: str, rows: pd.DataFrame) -> tuple[int, int, int, int] | None:
    """Objects, bytes, and the instants of the looks before and after they were written."""
    reclaimed = reclaim_entry(bundle.directory, system)
    if reclaimed is not None and reclaimed.get("settled_ns"):
        objects, size = int(reclaimed["objects"]), int(reclaimed["object_bytes"])
        return objects, objects * size, int(reclaimed["filled_ns"][0]), int(reclaimed["settled_ns"])
    filled = prefill_entry(bundle.directory, system)
    if filled is None or filled.get("resumed"):
        return None  # of a prefill that went on, the first look already saw most of it
    events = [e for e in _prefill_events(bundle) if e.subject == system]
    begins = [e.t_ns for e in events if e.facts.get("what") == "begins"]
    ends = [e.t_ns for e in events if e.facts.get("what") == "ends"]
    if not begins or not ends:
        return None
    nodes = rows[(rows["kind"] == "node") & rows["space_bytes"].notna()]
    # Going through a directory takes time: one that was begun before the end may have missed what
    # was written since. (Bundles from before that was noted have only when it was over.)
    begun_ns = nodes["space_began_ns"].fillna(nodes["t_ns"])
    after = nodes[begun_ns >= ends[-1]].groupby("subject")["t_ns"].min()
    if len(after) < nodes["subject"].nunique():
        return None
    objects = int(filled["objects"]) * max(1, len(filled.get("buckets") or ()))
    end_ns = int(after.max())  # by then every node was looked at
    return objects, objects * int(filled["object_bytes"]), begins[-1], end_ns


def _prefill_events(bundle: Bundle) -> Sequence[Any]:
    from wanlat.analysis.drill.events import read_events

    return [event for event in read_events(bundle.directory) if event.kind == "prefill"]


def _grown(rows: pd.DataFrame, begin_ns: int, end_ns: int) -> int | None:
    """By how much the directories of all nodes grew; None where one was not looked at."""
    total = 0.0
    for _, own in rows[rows["kind"] == "node"].groupby("subject"):
        known = own[own["space_bytes"].notna()]
        before = known[known["t_ns"] <= begin_ns]
        after = known[known["t_ns"] <= end_ns]
        if before.empty or after.empty:
            return None
        total += after["space_bytes"].iloc[-1] - before["space_bytes"].iloc[-1]
    return round(total)


def _written(rows: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    from wanlat.analysis.resources.model import ASKED, Window
    from wanlat.analysis.resources.use import growth

    window = Window(ASKED, begin_ns, end_ns)
    nodes = (own for _, own in rows[rows["kind"] == "node"].groupby("subject"))
    return sum(growth(own, [window], "written_bytes") or 0.0 for own in nodes)


def _scheme(bundle: Bundle, system: str) -> tuple[float | None, str | None]:
    """What the options in effect say that a byte must cost, as a number and in words."""
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
    if system == "quorum":
        nodes = rows_of_nodes(bundle)
        return (float(nodes), f"{nodes} replicas") if nodes else (None, None)
    return None, None


def rows_of_nodes(bundle: Bundle) -> int | None:
    """How many nodes the topology has; the reference store has a replica on each."""
    return len(sites_by_node(bundle.manifest.get("topology"))) or None
