"""The colours of a drill's charts: operations, outcomes, kinds of faults."""

from __future__ import annotations

# Blue and ochre differ in lightness and for every kind of colour-blindness; outcomes differ in
# shape as well.
READ_COLOUR, WRITE_COLOUR = "#004488", "#b8741a"
UNKNOWN_COLOUR = "#6b3fa0"
RECOVERED_COLOUR = "#117755"
SLOW_COLOUR = "#9a9a9a"

_PROCESS, _LINK, _RESOURCE, _OTHER = "#efcac4", "#c9d9ef", "#ece0b4", "#dcdcdc"
_FAULTS = {
    **dict.fromkeys(("kill", "stop", "restart", "crash-loop"), _PROCESS),
    **dict.fromkeys(
        ("slow", "lossy", "throttled", "blackhole", "partition", "one-way-cut", "flapping"), _LINK
    ),
    **dict.fromkeys(("disk-full", "cpu-throttled"), _RESOURCE),
}


def colour_of_fault(kind: str) -> str:
    """Light enough to be written on; faults on processes, links and resources differ."""
    return _FAULTS.get(kind, _OTHER)


def colour_of_operation(operation: str) -> str:
    """Of "read" or "write"."""
    return READ_COLOUR if operation == "read" else WRITE_COLOUR
