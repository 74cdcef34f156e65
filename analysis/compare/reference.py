"""The RTT at which the latencies of two studies of round trips are compared."""

from __future__ import annotations

from collections.abc import Sequence

from wanlat.analysis.bundle import Bundle
from wanlat.analysis.visits import Visits, read_visits
from wanlat.bundle.errors import BundleError

USUAL_MS = 100.0
"""The RTT that figures of distant datacenters are usually given for."""

_BEYOND = 1.05
"""What a link measures is a little more than what was asked for."""


def reference_rtt_ms(
    old: Bundle, new: Bundle, systems: Sequence[tuple[str, str]], wanted_ms: float | None
) -> float:
    """`wanted_ms`, or the greatest RTT up to USUAL_MS that was asked for in both; else the least.

    Raises BundleError where `wanted_ms` is beyond what either measured: a line says nothing of
    where nobody measured. Without any RTT in common it is the smaller of the two greatest ones.
    """
    asked = [
        _asked_ms(bundle, {pair[side] for pair in systems})
        for side, bundle in enumerate((old, new))
    ]
    if wanted_ms is not None:
        for bundle, rtts_ms in zip((old, new), asked, strict=True):
            if not rtts_ms or wanted_ms > max(rtts_ms) * _BEYOND:
                reach = f"up to {max(rtts_ms):g} ms" if rtts_ms else "no RTT"
                raise BundleError(
                    f"--at {wanted_ms:g}ms: {bundle.directory} measured {reach}, and a line says "
                    "nothing of where nobody measured."
                )
        return wanted_ms
    common = asked[0] & asked[1]
    usual = [rtt_ms for rtt_ms in common if rtt_ms <= USUAL_MS]
    if usual:
        return max(usual)
    if common:
        return min(common)
    return min((max(rtts_ms) for rtts_ms in asked if rtts_ms), default=USUAL_MS)


def _asked_ms(bundle: Bundle, systems: set[str]) -> set[float]:
    visits = read_visits(bundle) or Visits(())
    return {visit.requested_rtt_ms for system in systems for visit in visits.counting(system)}
