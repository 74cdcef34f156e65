"""A trace in words: title, labels of arrows, the critical path hop by hop, the caption."""

from __future__ import annotations

from collections.abc import Sequence

from wanlat.analysis.endpoints import is_known
from wanlat.analysis.names import EN_DASH, count, format_ms, short_version
from wanlat.analysis.trace import Trace
from wanlat.analysis.trace_messages import OTHER, Row


def title(trace: Trace) -> str:
    """What the picture is of, and its main finding."""
    trips = trace["chain_round_trips"]
    finding = f"{trips:g} round trip{'' if trips == 1 else 's'} on the critical path"
    finding = finding if trace["chain"] else "crosses no WAN link"
    return f"{trace['endpoint']} on {trace['title']} {short_version(trace['version'])}: {finding}"


def subtitle(trace: Trace) -> str:
    """Where it was measured and how long it took."""
    site = {lane["node"]: lane["site"] for lane in trace["nodes"]}
    client, target, rtt_ms = trace["client"], trace["target"], trace["measured_rtt_ms"]
    place = f"client on {client} in {site.get(client, '?')}"
    if target != client:
        place += f", target node {target} in {site.get(target, '?')}"
    rtt, in_rtts = "RTT not measured", ""
    if rtt_ms:
        rtt = f"RTT {format_ms(rtt_ms)} ms as measured"
        in_rtts = f" = {trace['latency_ms'] / rtt_ms:.2f} RTT"
    elif trace["rtt_range_ms"]:
        rtt = f"RTTs of {EN_DASH.join(map(format_ms, trace['rtt_range_ms']))} ms as measured"
    parts = [
        trace["topology"],
        rtt,
        f"placement {trace['placement']}" if is_known(trace["placement"]) else "",
        f"{format_ms(trace['latency_ms'])} ms{in_rtts}",
        place,
    ]
    return " · ".join(filter(None, parts))


def picked(trace: Trace) -> str:
    """Which request it is, of how many."""
    return f"{trace['picked'][:1].upper()}{trace['picked'][1:]}."


def path_of(trace: Trace) -> list[Row]:
    """The messages of the critical path, in order."""
    path = [message for message in trace["messages"] if message["on_chain"]]
    return sorted(path, key=lambda message: int(message["on_chain"]))


def description(trace: Trace) -> list[str]:
    """The critical path in lines of text, hop by hop; the first and the last have the rest."""
    lines = [title(trace), subtitle(trace), picked(trace)]
    answered = f"answered after {format_ms(trace['latency_ms'])} ms"
    if not trace["chain"]:
        return [*lines, f"{answered}; it crossed no WAN link, so there is nothing to draw"]
    for at_ms, which, rest in hop_texts(trace):
        lines.append(f"  {format_ms(at_ms)} ms  {which}: {', '.join(rest.splitlines())}")
    rest = format_ms(max(trace["after_chain_ms"], 0.0))
    return [*lines, f"{answered}, {rest} ms after the last of them arrived"]


def hop_texts(trace: Trace) -> list[tuple[float, str, str]]:
    """Of each hop of the critical path when it begins, which it is, and what it is."""
    hops, texts = len(trace["chain"]), []
    for hop, message in zip(trace["chain"], path_of(trace), strict=True):
        lines = [f"{hop['from']} → {hop['to']}  {sizes([message])}", what_of(message)]
        lines.append(f"left after {format_ms(max(hop['waited_ms'], 0.0))} ms")
        which = f"{hop['hop']} of {hops} hops" if hops > 1 else "the one hop"
        texts.append((max(hop["entry_ms"], 0.0), which, "\n".join(filter(None, lines))))
    return texts


def what_of(message: Row, longest: int = 34) -> str:
    """What a message is, if anything is known of that."""
    parts = [shortened(message["label"] or "", longest)]
    parts += ["acknowledgement waited for"] * message["acknowledgement"]
    parts += ["sent again"] * message["resent"]
    return ", ".join(filter(None, parts))


def sizes(messages: Sequence[Row]) -> str:
    """The sizes of messages on the wire: one, or the least and the greatest."""
    bytes_ = [message["bytes"] for message in messages]
    low, high = _bytes(min(bytes_)), _bytes(max(bytes_))
    if low == high:
        return low
    return f"{low.removesuffix(' B') if high.endswith(' B') else low}{EN_DASH}{high}"


def _bytes(number: int) -> str:
    if number < 10_000:
        return f"{number} B"
    return f"{number / 1024:.1f} KiB" if number < 1 << 20 else f"{number / (1 << 20):.1f} MiB"


def shortened(label: str, longest: int = 34) -> str:
    """A label without what all of its kind have: a gRPC package, the middle of a path."""
    service, slash, method = label.rpartition("/")
    if slash and "." in service and " " not in label:
        return f"{service.rpartition('.')[2]}/{method}"
    if len(label) <= longest:
        return label
    verb, space, path = label.rpartition(" ")
    tail = path[-max(longest - len(verb) - 2, 6) :]
    return f"{verb}{space}…{tail[max(tail.find('/'), 0) :]}"


def caption(trace: Trace, *, unlabelled: int, unshown_lanes: int, undrawn: int) -> list[str]:
    """How to read it, and what is not in it."""
    acks = trace["bare_acknowledgements"]
    is_other = any(message["kind"] == OTHER for message in trace["messages"])
    paragraphs = [
        "An arrow: one message over a WAN link, from when it entered the link to when it left it; "
        "slanted, because that takes time. What nodes of one site tell each other is not recorded.",
        "The critical path: messages of which each left a site after the one before had arrived "
        "there, as many as fit between request and answer; "
        f"{format_ms(max(trace['after_chain_ms'], 0.0))} ms passed after its last.",
    ]
    if undrawn:
        paragraphs.append(f"Not drawn: {count(undrawn, 'message')} of others than the request.")
    elif is_other:
        paragraphs.append("Unrelated traffic: nothing that this request can have caused.")
    if not trace["knows_background"]:
        paragraphs.append(
            "The run had no idle time to learn its background from, so heartbeats of "
            f"{trace['title']} may be among the messages."
        )
    left_out = {
        "bare TCP acknowledgement before the answer": acks,
        "label for want of room (trace.json has all)": unlabelled,
        "node with no message at all": unshown_lanes,
    }
    if parts := [f"{n} × {what}" for what, n in left_out.items() if n]:
        paragraphs.append(f"Left out: {', '.join(parts)}.")
    return [*paragraphs, *trace["notes"]]
