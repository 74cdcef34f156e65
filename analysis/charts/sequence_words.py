"""What a sequence diagram says in words: title, labels of arrows, the critical path hop by hop."""

from __future__ import annotations

from collections.abc import Sequence

from wanlat.analysis.names import (
    EN_DASH,
    count,
    display_system,
    format_ms,
    series_labels,
    series_note,
)
from wanlat.analysis.placement import is_known
from wanlat.analysis.trace_model import Hop, Message, Trace

_SHORTEST_TAIL = 6


def title(trace: Trace) -> str:
    """What the picture is of, and its main finding."""
    series, endpoint, _ = trace.group
    found = "crosses no WAN link"
    if trace.path:
        times = trace.round_trips
        found = f"{times:g} round trip{'' if times == 1 else 's'} on the critical path"
    return f"{endpoint} on {series_labels([series])[series]}: {found}"


def subtitle(trace: Trace) -> str:
    """Where it was measured and how long it took."""
    series, _, placement = trace.group
    asked = f"client on {trace.client} in {trace.site_of(trace.client)}"
    if trace.target != trace.client:
        asked += f", target node {trace.target} in {trace.site_of(trace.target)}"
    in_rtts = f" = {trace.latency_ms / trace.rtt_ms:.2f} RTT" if trace.rtt_ms else ""
    parts = [
        trace.topology,
        _rtt(trace),
        f"placement {placement}" if is_known(placement) else "",
        f"{format_ms(trace.latency_ms)} ms{in_rtts}",
        asked,
        series_note(series),
    ]
    return " · ".join(part for part in parts if part)


def picked(trace: Trace) -> str:
    """Which request it is, of how many."""
    return trace.picked[:1].upper() + trace.picked[1:] + "."


def _rtt(trace: Trace) -> str:
    """The RTT between sites as it was measured."""
    if trace.rtt_ms is not None:
        return f"RTT {format_ms(trace.rtt_ms)} ms as measured"
    if trace.rtt_range_ms is not None:
        low, high = (format_ms(bound) for bound in trace.rtt_range_ms)
        return f"RTTs of {low}{EN_DASH}{high} ms as measured"
    return "RTT not measured"


def hop_lines(hop: Hop, of: int) -> list[str]:
    """A hop of the critical path in short lines: which, whence whither, what, what before it."""
    message = hop.message
    which = f"{hop.number} of {of} hops" if of > 1 else "the one hop"
    lines = [which, f"{message.source} → {message.target}  {sizes([message])}", what_of(message)]
    return [*filter(None, lines), f"left after {format_ms(max(hop.wait_ms, 0.0))} ms"]


def what_of(message: Message, longest: int = 34) -> str:
    """What a message is, if anything is known of that."""
    parts = [shortened(message.label, longest) if message.label else ""]
    if message.acknowledgement:
        parts.append("acknowledgement waited for")
    if message.resent:
        parts.append("sent again")
    return ", ".join(part for part in parts if part)


def bytes_text(number: int) -> str:
    """A number of bytes, in KiB or MiB where that is shorter."""
    if number < 10_000:
        return f"{number} B"
    if number < 1 << 20:
        return f"{number / 1024:.1f} KiB"
    return f"{number / (1 << 20):.1f} MiB"


def sizes(messages: Sequence[Message]) -> str:
    """The sizes of messages on the wire: one, or the least and the greatest."""
    low, high = min(one.bytes for one in messages), max(one.bytes for one in messages)
    if low == high:
        return bytes_text(low)
    if high < 10_000:
        return f"{low}{EN_DASH}{high} B"
    return f"{bytes_text(low)}{EN_DASH}{bytes_text(high)}"


def shortened(label: str, longest: int = 34) -> str:
    """A label without what all of its kind have: a gRPC package, the middle of a path."""
    service, slash, method = label.rpartition("/")
    first_word, _, path = label.partition(" ")
    if slash and "." in service and " " not in label:
        return f"{service.rpartition('.')[2]}/{method}"
    if path.startswith("/") and len(label) > longest:
        parts = path.strip("/").split("/")
        kept = parts[-1]
        for part in reversed(parts[:-1]):
            if len(first_word) + 3 + len(part) + 1 + len(kept) > longest:
                break
            kept = f"{part}/{kept}"
        room = max(longest - len(first_word) - 3, _SHORTEST_TAIL)
        kept = kept if len(kept) <= room else "…" + kept[-(room - 1) :]
        return f"{first_word} …/{kept.removeprefix('…/')}"
    return label


def caption(trace: Trace, *, unlabelled: int, unshown_lanes: int, undrawn: int | None) -> list[str]:
    """How to read it, and what is not in it; `undrawn` is None where each has an arrow."""
    lines = [
        "An arrow: one message over a WAN link, from when it entered the link to when it left it; "
        "slanted, because that takes time. What nodes of one site tell each other is not recorded.",
        "The critical path: messages of which each left a site after the one before had arrived "
        "there, as many as fit between request and answer; "
        f"{format_ms(max(trace.rest_ms, 0.0))} ms passed after its last.",
    ]
    if undrawn is not None:
        lines.append(
            "A pale triangle: several messages that leave a node together, or that come to it "
            f"together. Not drawn: {count(undrawn, 'message')} of others than the request."
        )
    if trace.bare_acks:
        lines.append(
            f"Left out: {count(trace.bare_acks, 'bare TCP acknowledgement')} before the answer."
        )
    if undrawn is None and any(message.kind == "other" for message in trace.messages):
        lines.append(
            "Unrelated traffic: sent for an earlier request, or for nothing that this one can have "
            "caused."
        )
    if not trace.knows_background:
        lines.append(
            "The run had no idle time to learn its background from, so heartbeats of "
            f"{display_system(trace.group.series.system)} may be among the messages."
        )
    if unlabelled:
        verb = "has" if unlabelled == 1 else "have"
        lines.append(
            f"{count(unlabelled, 'message')} {verb} no label for want of room; trace.json has all."
        )
    if unshown_lanes:
        lines.append(f"Without a lane: {count(unshown_lanes, 'node')} with no message at all.")
    return [*lines, *trace.notes]
