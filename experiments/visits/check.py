"""Can a topology's links be given the RTTs of a study? Asked before anything is started."""

from __future__ import annotations

from wanlat.emulator.changes import Change, mistakes
from wanlat.experiments.visits.model import RoundTripsSpec
from wanlat.topologies.errors import UserError
from wanlat.topologies.resolve import Plan
from wanlat.topologies.wording import listing


def check_visits(study: str, spec: RoundTripsSpec, plan: Plan) -> None:
    """Raise UserError where there is no link to change, or one that cannot be changed so."""
    if not plan.wan_links:
        raise UserError(
            f"Study {study} changes the RTT between sites, and topology {plan.name} has one site, "
            "so no request crosses a WAN link. Choose a topology of several sites (`--topology`; "
            "`wanlat topology list` shows those that are here), or a study without `round_trips`."
        )
    for rtt in spec.rtts:
        settings = {"rtt": str(rtt), "jitter": str(spec.jitter_at(rtt))}
        change = Change.of(settings, both_ways=True)
        for link in plan.wan_links:
            for before in (link.forward, link.backward):
                wrong = mistakes(change.on(before))
                if wrong:
                    raise UserError(
                        f"Study {study} gives the link {link.a}/{link.b} of topology {plan.name} "
                        f"an RTT of {rtt}, and with that it cannot be: {listing(wrong)}. Change "
                        "the link in the topology, or `round_trips` in the study."
                    )
