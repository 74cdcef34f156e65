"""All requests of a study of one network, one after another, with as many samples as it can pay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from wanlat.experiments.asked import Asked
from wanlat.experiments.budget import Planned, Stopwatch, plan_samples
from wanlat.probes.fewer import fewer_measured
from wanlat.probes.one_key import Overwrites
from wanlat.probes.oneshot import OnSample, prepare, run_requests
from wanlat.probes.plan import Header, Plan, Request
from wanlat.probes.process import Spawn
from wanlat.probes.records import Sample


class Sending:
    """The requests of one system: what is sent is decided as it goes.

    With a budget, how many samples are taken is known when the warm-up is over; with one key that
    is overwritten, which bytes a read must bring is known when the write before it is.
    """

    def __init__(self, asked: Asked) -> None:
        self.plan: Plan = asked.plan()
        self.planned: list[Planned] | None = None
        """What the budget allowed; None without one, and until the warm-up is over."""
        self._asked = asked
        self._overwrites = Overwrites() if asked.study.keys == "one" else None

    def totals(self) -> Counter[str]:
        """Return how many requests each phase has, as far as is known."""
        plan = self.plan
        phases = ("prepare", plan.prepare), ("warmup", plan.warmup), ("measure", plan.measure)
        return Counter({name: len(requests) for name, requests in phases})

    def run(self, spawn: Spawn, header: Header, on_sample: OnSample) -> None:
        """Prepare, warm up, measure. Raises as ``wanlat.probes.oneshot.run_plan``."""
        overwrites = self._overwrites

        def take(request: Request, sample: Sample) -> None:
            if overwrites is not None:
                overwrites.note(request, sample)
            on_sample(request, sample)

        prepare(spawn, header, self.plan.prepare, take)
        requests = self._requests()
        if overwrites is not None:
            requests = overwrites.following(requests)
        run_requests(spawn, header, requests, take)

    def _requests(self) -> Iterator[Request]:
        budget = self._asked.study.budget
        if budget is None:
            yield from self.plan.warmup
        else:
            watch = Stopwatch()
            yield from watch.timing(self.plan.warmup)
            self._cut(watch)
        yield from self.plan.measure

    def _cut(self, watch: Stopwatch) -> None:
        asked, plan = self._asked, self.plan
        budget = asked.study.budget
        assert budget is not None
        study = asked.study
        self.planned = plan_samples(
            budget, asked.turns(), study.samples, study.object_size.bytes, watch.took_s
        )
        samples = {(each.endpoint, each.placement): each.samples for each in self.planned}
        measure = fewer_measured(plan.measure, samples, plan.seed)
        self.plan = Plan(plan.prepare, plan.warmup, measure, plan.seed)
