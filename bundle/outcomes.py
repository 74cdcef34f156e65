"""What came of a request, and which of it is the store's.

`not_sent`: the client's machine could not send it (no descriptor, no port, no memory; a client
program that never became ready or died before it read the request). It is no fault of the store,
so it is in no availability and opens no outage. Another thing is a request that was due and
`EXPIRED`: it waited in line for answers of the store until its deadline was too near. That is the
store's slowness, and counts against it; its outcome is `fail`, and it has no start.
"""

from __future__ import annotations

import re

from wanlat.bundle.documents import NOT_SENT

EXPIRED = "expired: earlier requests were still waiting"
MOST_NOT_SENT = 0.01
"""The share of what was due beyond which a run proves nothing about the store, and fails."""

_MACHINE = re.compile(
    r"[^:]* (did not become ready|cannot be started)(:|$)"
    r"|(too many open files( in system)?|cannot allocate memory|no buffer space available"
    r"|cannot assign requested address|address already in use) \(connect\)"
    r"|not sent: the (object|request) "
)
"""Errors of requests that were stored as `fail` before there was `not_sent`."""


def outcome_of(outcome: str, error: str | None) -> str:
    """The outcome of a stored request, also of one stored before there was `not_sent`."""
    is_ours = outcome == "fail" and error is not None and _MACHINE.match(error)
    return NOT_SENT if is_ours else outcome


def are_too_many(not_sent: int, due: int) -> bool:
    """Whether so many of the requests that were due were not sent that the rest proves nothing."""
    return not_sent > MOST_NOT_SENT * due


def why_too_many(not_sent: int, due: int, error: str | None = None) -> str:
    """The reason why a run is of no use because of that, and the way out."""
    last = f" (such as: {error})" if error else ""
    return (
        f"{not_sent:,} of {due:,} requests could not be sent by this machine{last}, more than "
        f"{100 * MOST_NOT_SENT:g} %: what was measured says nothing of the store. Allow more open "
        "files (`ulimit -n`), send from fewer clients or workers, or run less beside it."
    )
