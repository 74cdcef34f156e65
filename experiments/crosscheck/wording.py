"""Sentences for what was seen in the packets. None is written without it having been seen."""

from __future__ import annotations

from wanlat.experiments.crosscheck.compare import Explanation
from wanlat.experiments.crosscheck.waits import Extra

_WAITS = {
    "connect": "opens a new connection",
    "settings": "waits for the server's HTTP/2 SETTINGS before it sends {endpoint}",
    "continue": (
        "sends `Expect: 100-continue` and waits for `100 Continue` before it sends {endpoint}'s "
        "body"
    ),
    "no continue": (
        "sends `Expect: 100-continue` and waits in vain for `100 Continue` before it sends "
        "{endpoint}'s body"
    ),
    "acknowledgement": (
        "waits for an acknowledgement before it sends the rest of {endpoint} (Nagle's algorithm, "
        "or a full congestion window)"
    ),
    "pause": "pauses with nothing on the wire",
}

_WORTH_SAYING = 0.2  # of a round trip


def sentence(client: str, endpoint: str, extra: Extra) -> str:
    """Say what a client waits for."""
    if extra.kind == "answer":
        if extra.what == endpoint:
            return f"{client} sends {endpoint} more than once"
        return f"{client} asks {extra.what or 'something that could not be read'} as well"
    return f"{client} {_WAITS[extra.kind].format(endpoint=endpoint)}"


def round_trips(ms: float, rtt_ms: float) -> str:
    """Say how many round trips a time is."""
    count = ms / rtt_ms
    text = f"{round(count)}" if abs(count - round(count)) < 0.05 else f"{count:.1f}"
    return f"{text} round trip" + ("" if text == "1" else "s")


def explain(client: str, endpoint: str, one: Explanation, rtt_ms: float) -> str:
    """Say what a client waits for, and how long."""
    said = sentence(client, endpoint, one.extra)
    if one.extra.kind == "pause":
        return f"{said}: {one.ms:.1f} ms"
    if one.waited_ms - one.ms > _WORTH_SAYING * rtt_ms:
        said += f" ({one.waited_ms / rtt_ms:.1f}, the store being at work meanwhile)"
    return f"{said}: {round_trips(one.ms, rtt_ms)}"
