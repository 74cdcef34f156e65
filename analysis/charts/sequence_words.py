"""What a sequence diagram says in words: title, labels of arrows, the chain told step by step."""

from __future__ import annotations

from wanlat.analysis.names import (
    EN_DASH,
    count,
    display_system,
    format_ms,
    series_labels,
    series_note,
)
from wanlat.analysis.placement import is_known
from wanlat.analysis.trace_model import Crossing, Message, Trace

_SHORTEST_TAIL = 6


def title(trace: Trace) -> str:
    """What the picture is of, and its main finding."""
    series, endpoint, _ = trace.group
    return f"{endpoint} on {series_labels([series])[series]}: {_trips(trace)} by chain"


def _trips(trace: Trace) -> str:
    return count_of(trace.round_trips, "round trip")


def count_of(number: float, noun: str) -> str:
    """ "1 round trip", "2.5 round trips"."""
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"


def subtitles(trace: Trace) -> list[str]:
    """Where it was measured and how long it took; then which request it is."""
    series, _, placement = trace.group
    asked = f"client on {trace.client} in {trace.site_of(trace.client)}"
    if trace.target != trace.client:
        asked += f", asking {trace.target} in {trace.site_of(trace.target)}"
    parts = [
        trace.topology,
        rtt_words(trace),
        f"placement {placement}" if is_known(placement) else "",
        f"{format_ms(trace.latency_ms)} ms{_in_rtts(trace)}",
        asked,
        series_note(series),
    ]
    return [" · ".join(part for part in parts if part), _picked(trace)]


def _picked(trace: Trace) -> str:
    return trace.picked[:1].upper() + trace.picked[1:] + "."


def rtt_words(trace: Trace) -> str:
    """The RTT between sites as it was measured."""
    if trace.rtt_ms is not None:
        return f"RTT {format_ms(trace.rtt_ms)} ms as measured"
    if trace.rtt_range_ms is not None:
        low, high = (format_ms(bound) for bound in trace.rtt_range_ms)
        return f"RTTs of {low}{EN_DASH}{high} ms as measured"
    return "RTT not measured"


def _in_rtts(trace: Trace) -> str:
    if not trace.rtt_ms:
        return ""
    return f" = {trace.latency_ms / trace.rtt_ms:.2f} RTT"


def answered(trace: Trace) -> str:
    """What the line at the end of the request says."""
    return f"answered after {format_ms(trace.latency_ms)} ms"


def step(crossing: Crossing, of: int) -> str:
    """ "3 of 4 crossings", where it stands beside the picture."""
    return f"{crossing.number} of {of} crossings" if of > 1 else "the one crossing"


def step_lines(crossing: Crossing, of: int) -> list[str]:
    """A crossing of the chain in three short lines: which, whence whither, what before it."""
    message = crossing.message
    lines = [step(crossing, of), f"{message.source} → {message.target}  {size(message)}"]
    what = what_of(message)
    if what:
        lines.append(what)
    lines.append(f"left after {format_ms(max(crossing.wait_ms, 0.0))} ms")
    return lines


def what_of(message: Message, longest: int = 34) -> str:
    """What a message is, if anything is known of that."""
    parts = [shortened(message.label, longest) if message.label else ""]
    if message.is_acknowledgement:
        parts.append("acknowledgement waited for")
    if message.is_resent:
        parts.append("sent again")
    return ", ".join(part for part in parts if part)


def size(message: Message) -> str:
    """ "249 B", "64.3 KiB"."""
    return bytes_text(message.bytes)


def bytes_text(number: int) -> str:
    """A number of bytes, in KiB or MiB where that is shorter."""
    if number < 10_000:
        return f"{number} B"
    if number < 1 << 20:
        return f"{number / 1024:.1f} KiB"
    return f"{number / (1 << 20):.1f} MiB"


def sizes(messages: list[Message]) -> str:
    """The sizes of several messages: one, or the least and the greatest."""
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


def caption(trace: Trace, *, unlabelled: int, unshown_lanes: int) -> list[str]:
    """How to read it, and what is not in it."""
    lines = [
        "An arrow: one message over a WAN link, from when it entered the link to when it left it; "
        "slanted, because that takes time. What nodes of one site tell each other is not recorded.",
    ]
    chain = len(trace.chain)
    if chain:
        rest = format_ms(max(trace.rest_ms, 0.0))
        lines.append(
            "The chain: messages of which each left a site after the one before had arrived there, "
            f"as many as fit between request and answer; {rest} ms passed after its last."
        )
    else:
        lines.append("No message that the answer waited for crossed a WAN link.")
    if trace.bare_acks:
        lines.append(
            f"Left out: {count(trace.bare_acks, 'bare TCP acknowledgement')} before the answer."
        )
    lines += _on_kinds(trace)
    if unlabelled:
        verb = "has" if unlabelled == 1 else "have"
        lines.append(
            f"{count(unlabelled, 'arrow')} {verb} no label for want of room; trace.json has all."
        )
    if unshown_lanes:
        lines.append(f"Without a lane: {count(unshown_lanes, 'node')} with no message at all.")
    lines += trace.notes
    return lines


def _on_kinds(trace: Trace) -> list[str]:
    kinds = {message.kind for message in trace.messages}
    lines = []
    if "other" in kinds:
        lines.append(
            "Left over: sent for an earlier request, or for nothing that this one can have caused."
        )
    if not trace.knows_background:
        lines.append(
            "Background is not told apart: the run had no idle time to learn it from, so "
            f"heartbeats of {display_system(trace.group.series.system)} may be among the messages."
        )
    return lines
