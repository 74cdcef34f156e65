"""Placement: whether the node that was asked holds a replica of the key.

A local request may need no other node where a remote one needs a round trip at least, so the two
are different things measured, and nothing in this room averages over them.
"""

from __future__ import annotations

LOCAL, REMOTE, UNKNOWN = "local", "remote", "unknown"
PLACEMENTS = (LOCAL, REMOTE, UNKNOWN)
"""In the order in which tables and charts show them."""

MEANING = "Local: the node that was asked holds a replica of the key; remote: it does not."


def is_known(placement: str) -> bool:
    """Whether there is anything to say: not where a request has no key or the system is silent."""
    return placement != UNKNOWN


def with_placement(name: str, placement: str) -> str:
    """`name` with its placement where that is known: "PutObject, local"."""
    return f"{name}, {placement}" if is_known(placement) else name
