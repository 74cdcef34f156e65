"""The packets around one request, put together to messages, and what each is of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from wanlat.analysis.packets.background import Background
from wanlat.analysis.packets.critical_path import LOOSE_NS
from wanlat.analysis.packets.labels import HEARTBEATS, labels_of
from wanlat.analysis.packets.record import (
    ACK,
    AT_ONCE_NS,
    FIN,
    FULL_SEGMENT_BYTES,
    NEVER,
    RST,
    SYN,
    Bools,
    Record,
    messages_of,
)

Row = dict[str, Any]

REQUEST, BACKGROUND, OTHER = "request", "background", "other"
"""Kinds of messages: of the request; of no request, as far as idle windows and its label
show; left over from an earlier one, or at least not to be explained by this one."""
TOGETHER_NS = 1_000_000
"""Packets of a stream that enter within this time of the one before are one message, unless each
is labelled."""
_NAMES = ((FIN, "FIN"), (RST, "RST"), (SYN, "SYN"), (SYN | ACK, "SYN+ACK"))


def messages_within(
    record: Record,
    background: Background,
    capture: Path,
    span: tuple[int, int, int],
    links: Sequence[int],
    ends: tuple[str, str],
    messages: Any = None,
) -> tuple[list[Row], int]:
    """The messages that were on a link from the start of a request on, in order of entry.

    `span` has the request's start, its answer, and where its trace ends, ns; `links` are the places
    of the critical path's packets, `ends` the client and the target node. The rows are those of
    trace.json's `messages`. Bare acknowledgements are left out, but for those of the path; how many
    of them entered before the answer is the second result. Labels are taken from the pcapng file
    `capture`; where that is missing there are none. `messages`: see `labels_of`.
    """
    begin, answered, until = span
    packets, whole = record.packets, messages_of(record)
    entry, left = packets["entry_ns"], packets["departure_ns"]
    present = packets[(entry <= until) & ((entry >= begin) | (left > begin))]
    number = {place: hop for hop, place in enumerate(links, start=1)}
    is_idle = present["is_bare_ack"] & ~present.index.isin(links)
    bare_acks = int((is_idle & present["entry_ns"].between(begin, answered)).sum())
    drawn = present[~is_idle]
    labels = labels_of(record, drawn.index, capture, messages) | _of_flags(drawn)
    arrived = np.where(left[drawn.index] >= 0, left[drawn.index], whole.arrival_ns[drawn.index])
    drawn = drawn.assign(
        label=pd.Series({place: labels.get(place) for place in drawn.index}, dtype=object),
        on_chain=pd.Series({place: number.get(place) for place in drawn.index}, dtype=object),
        resent=whole.is_resent[drawn.index],
        arrived_ns=np.where(drawn.index.isin(links), arrived, drawn["departure_ns"]),
    )
    marked = background.packets[drawn.index] | drawn["label"].isin(HEARTBEATS).to_numpy()
    origin = [record.node_of(end) for end in ends]
    drawn["kind"] = _kinds(drawn, record, begin, origin, marked)
    bursts = drawn.groupby(_bursts(drawn), sort=False)
    return [_message(rows, record, begin) for _, rows in bursts], bare_acks


def _of_flags(packets: pd.DataFrame) -> dict[int, str]:
    """What opens or closes a connection, by place."""
    flags = packets.loc[packets["payload_bytes"] == 0, "flags"]
    return {
        int(place): name for bits, name in _NAMES for place in flags.index[flags & bits == bits]
    }


def _bursts(packets: pd.DataFrame) -> pd.Series[int]:
    """The number of the message that each packet is of, to a reader; what was lost is by itself."""
    names = ["entry_ns", "kind", "departure_ns", "payload_bytes"]
    before = packets.groupby("stream")[names].shift()
    is_more = packets["label"].isna() | (packets["label"] == "DATA")
    is_more &= packets["entry_ns"] - before["entry_ns"] <= TOGETHER_NS
    is_more &= (packets["payload_bytes"] > 0) & (before["payload_bytes"] > 0)
    is_more &= (packets["kind"] == before["kind"]) & ~packets["resent"]
    is_more &= (packets["departure_ns"] >= 0) & (before["departure_ns"] >= 0)
    number = pd.Series(range(len(packets)), packets.index).where(~is_more)
    return number.groupby(packets["stream"]).ffill().astype(int)


def _kinds(
    packets: pd.DataFrame, record: Record, begin: int, origin: Sequence[int | None], marked: Bools
) -> list[str]:
    """What packets are of, which come in the order of entry.

    The request's are those of its critical path, and what left its node

    - at once after something of the request on its connection; not after something of others;
    - not long after something of the request arrived at the node, or after the request began at the
      client and the target node; or at once after something arrived at another node of the site
      (then the LAN handed it on);
    - as the answer that its connection owes, after all the time that a disk takes; or as the rest
      of what does not fit into one segment;
    - together with a packet of the critical path.

    Heartbeats by their label, and whatever idle windows show to come without requests, are of no
    request unless the path has them.
    """
    entry, left, stream, source, target = (
        packets[name].to_numpy()
        for name in ("entry_ns", "departure_ns", "stream", "source", "target")
    )
    site, on_path = record.node_site, packets["on_chain"].notna().to_numpy()
    is_last = (packets["payload_bytes"] < FULL_SEGMENT_BYTES * packets["segments"]).to_numpy()
    resent = packets["resent"].to_numpy()
    mine = np.zeros(len(packets), dtype=bool)

    def is_mine(one: int) -> bool:
        now, node = entry[one], source[one]
        if now < begin:
            return False
        came = (left >= 0) & (left <= now)
        here, at_once = came & (target == node), came & (now - left <= AT_ONCE_NS)
        answered = np.flatnonzero(here & at_once & (stream == stream[one] ^ 1))
        if answered.size:
            return bool(mine[answered[np.argmax(left[answered])]])
        is_first = node in origin and now - begin <= LOOSE_NS
        if is_first or (mine & here & (now - left <= LOOSE_NS)).any():
            return True
        if (here & at_once).any():
            return False
        sent = np.flatnonzero(stream[:one] == stream[one])
        requested = mine & came & (stream == stream[one] ^ 1) & is_last
        goes_on = requested.sum() > (mine[sent] & is_last[sent]).sum()
        if sent.size and mine[sent[-1]]:
            is_near = now - entry[sent[-1]] <= LOOSE_NS
            goes_on |= is_near or resent[one] or not is_last[sent[-1]]
        by_lan = mine & at_once & (site[target] == site[node])
        beside = on_path & (source == node) & (np.abs(entry - now) <= AT_ONCE_NS)
        return bool(goes_on or by_lan.any() or beside.any())

    for one in range(len(packets)):
        mine[one] = on_path[one] or (not marked[one] and is_mine(one))
    return [str(kind) for kind in np.where(mine, REQUEST, np.where(marked, BACKGROUND, OTHER))]


def _message(rows: pd.DataFrame, record: Record, begin: int) -> Row:
    """A row of trace.json's `messages`, of the packets that it consists of."""

    def since(instants: pd.Series[int], last: bool = True) -> float | None:
        known = instants[(instants >= 0) & (instants < NEVER)]
        return None if known.empty else float((max(known) if last else min(known)) - begin) / 1e6

    first, last, hop = rows.iloc[0], rows.iloc[-1], rows["on_chain"].dropna()
    return {
        "from": record.nodes[first["source"]],
        "to": record.nodes[first["target"]],
        "entry_ms": (int(first["entry_ns"]) - begin) / 1e6,
        "last_entry_ms": (int(last["entry_ns"]) - begin) / 1e6,
        "first_departure_ms": since(rows["departure_ns"], last=False),
        "departure_ms": since(rows["arrived_ns"]),
        "bytes": int(rows["wire_bytes"].sum()),
        "payload_bytes": int(rows["payload_bytes"].sum()),
        "packets": int(rows["segments"].sum()),
        "label": first["label"],
        "on_chain": None if hop.empty else int(hop.iloc[0]),
        "kind": first["kind"],
        "fate": str(last["fate"]),
        "resent": bool(first["resent"]),
        "acknowledgement": bool(first["is_bare_ack"]),
        "background": first["kind"] == BACKGROUND,
    }
