"""One system's part of a study of the operating envelope: one cluster, searched to its limits.

The search decides which network is next (`wanlat.experiments.envelope.search`). Every trial on it
begins near, where the cluster has to be well; then the links change, settle, and the promise is put
to the test. When the verdict is known, all that was written meanwhile is read from every node: a
lost write breaks the promise, however many trials held. Where another node has come to lead, the
first is made to lead again, as when the cluster was started. A cluster that is not well again when
it is near is restarted, and that is noted.

At last, where the study has it, who leads is killed (`wanlat.experiments.envelope.price`).
"""

from __future__ import annotations

import random
import signal
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from wanlat.bundle import documents
from wanlat.bundle.documents import Envelope, Envelopes, Network, Price, TestedNetwork, Trial
from wanlat.bundle.read import attempts_before, read_document
from wanlat.emulator.calibration import Tolerance
from wanlat.emulator.calibration.live import BetweenSites, pairs_between_sites
from wanlat.emulator.lab import Lab
from wanlat.experiments.calibration_gate import FOR_ROUND_TRIPS
from wanlat.experiments.drill.clients import FILL_OWNER, Load, fill, verify
from wanlat.experiments.drill.ledger import Ledger
from wanlat.experiments.drill.prepare import Place
from wanlat.experiments.envelope.extent import NEAR_S, left_s, search_takes, settle_s
from wanlat.experiments.envelope.price import kill_leader, measure_idle, patience_s
from wanlat.experiments.envelope.search import Limit, Question
from wanlat.experiments.envelope.trial import Users, run_trial
from wanlat.experiments.kinds.envelope import EnvelopeSpec
from wanlat.experiments.prepare import RequestPlan
from wanlat.experiments.requests import NotFoundTracker
from wanlat.experiments.workloads.pace import NONE, Pace, Seconds
from wanlat.experiments.workloads.requests import Workload, wait_until
from wanlat.probes.process import Spawn
from wanlat.systems.base import Cluster
from wanlat.systems.engine.progress import elapsed
from wanlat.systems.engine.wait import Wait, ready_timeout_s
from wanlat.systems.errors import SystemFailed
from wanlat.topologies.errors import MachineLate, RunFailed
from wanlat.topologies.load import load as load_topology
from wanlat.topologies.resolve import resolve
from wanlat.topologies.wording import listing

_ORIGIN = "envelope"
_OBJECTS = 20
"""That are there to be read before anything is tested."""
_WELL_WITHIN_S = 15.0
"""How long a cluster may take to be well when it is near."""
_VERIFY_S = 60.0
_AGAIN = 8
"""Trials in a row that a late network may spoil."""


def missing(answers: Iterable[set[str]]) -> tuple[int, int]:
    """Count what no node has, and what some do not have: of each object, all nodes' answers."""
    objects = [*answers]
    lost = sum("wrong" in answered or answered == {"no"} for answered in objects)
    return lost, sum({"yes", "no"} <= answered for answered in objects)


class EnvelopeWorkload(Workload[EnvelopeSpec]):
    """One system's part of a study of the operating envelope."""

    @classmethod
    def takes(
        cls,
        spec: EnvelopeSpec,
        requests: RequestPlan,  # noqa: ARG003
        pace: Pace,  # noqa: ARG003
    ) -> tuple[Seconds, Seconds]:
        """Return how long the search takes, wherever the limits are."""
        return search_takes(spec), NONE

    @property
    def tolerance(self) -> Tolerance:
        """Of the lab's calibration; what is tested without jitter and loss is measured again."""
        return FOR_ROUND_TRIPS

    def before_start(self, lab: Lab) -> None:
        """Bring all sites near each other."""
        self._change(lab, self.spec.plan.near)

    def send(self, lab: Lab, spawn: Spawn, cluster: Cluster, not_found: NotFoundTracker) -> None:  # noqa: ARG002
        """Search, and write down every network that is tested, and every limit."""
        prepared, requests = self.prepared, self.subject.requests
        self.outcome.planned -= requests.measured()  # its endpoints are not timed
        self._lab, self._cluster = lab, cluster
        leads = cluster.defined.definition.leader is not None
        self._found = Envelope(system=self.name, leads=leads, regions=self._regions())
        self._link, self._is_well = self._link_to_cut(), False
        pairs = pairs_between_sites(prepared.plan, prepared.target, prepared.seed)
        path = self.bundle.directory / "ledger.jsonl"
        with Ledger(path, prepared.seed) as ledger, BetweenSites(lab, pairs) as between:
            assert requests.objects is not None
            self._between = between
            users = Users(
                Load(
                    lab=lab,
                    cluster=cluster,
                    api=requests.objects,
                    ledger=ledger,
                    seed=prepared.seed,
                    object_bytes=prepared.study.object_size.bytes,
                    constant=self.subject.of_samples,
                    on_row=self.bundle.sample,
                ),
                Place("user", prepared.client, prepared.target),
                self.spec.promise,
            )
            with users:
                self._users, self._leader = users, cluster.leader()
                self._fill()
                self._kept = self._of_earlier_attempts()
                self._began_s = time.monotonic()
                self.spec.plan.find(self._decide, self._chance(), self._note)
                if self.spec.kills:
                    self._find_price()
            self._found.is_complete = True
            self._write()
        cluster.check()

    def _chance(self) -> random.Random:
        """Return what draws the order of the search, from the beginning."""
        return random.Random(f"{self.prepared.seed}/envelope")

    # -- a network -----------------------------------------------------------------------------

    def _of_earlier_attempts(self) -> list[TestedNetwork]:
        """Return the networks that have a verdict from an attempt that ended early, in their order.

        The search is the same every time, so that these are the answers to its first questions.
        """
        attempts = attempts_before(self.bundle.directory)
        for attempt in attempts:
            document = read_document(attempt, Envelopes)
            systems = document.systems if document is not None else ()
            for search in systems:
                kept = [test for test in search.tests if test.verdict is not None]
                if search.system == self.name and kept and not search.is_complete:
                    self.session.warn(
                        f"{len(kept)} networks were tested by earlier attempts, on other clusters; "
                        f"their samples are in {listing(place.name for place in attempts)}"
                    )
                    return kept
        return []

    def _decide(self, question: Question) -> bool:
        """Return whether the promise holds on a network: as is known, or by testing it."""
        number = len(self._found.tests)
        if number < len(self._kept):
            known = self._kept[number]
            if (known.network, known.after) == (question.network, question.after):
                self._found.tests = [*self._found.tests, known]
                return known.verdict == "holds"
            self._kept = []  # of another search: nothing more of it is known
        return self._tested(question)

    def _tested(self, question: Question) -> bool:
        """Test a network until it is known whether the promise holds on it."""
        spec, users = self.spec, self._users
        test = TestedNetwork(
            number=len(self._found.tests),
            network=question.network,
            after=question.after,
        )
        self._found.tests = [*self._found.tests, test]
        since, held = len(users.shared.ledger.objects()), list[bool]()
        done = [other.verdict == "holds" for other in self._found.tests[:-1]]
        took_s, known = time.monotonic() - self._began_s, len(self._kept)
        ahead, ahead_s = left_s(spec, self._chance(), done, took_s, known)
        while (verdict := spec.test.verdict(held)) is None:
            detail = f"{_describe(question, held)}; about {elapsed(ahead_s)} left"
            self.progress("searching", test.number, test.number + ahead, detail)
            trial = self._trial(question, test)
            held.append(trial.held)
            test.trials = [*test.trials, trial]
        self._come_near(test)
        self._verify(test, since)
        test.verdict = "fails" if test.lost else verdict
        self._write()
        return test.verdict == "holds"

    def _trial(self, question: Question, test: TestedNetwork) -> Trial:
        """Carry out a trial; again where the machine was late, whether it held or not.

        With the network, or with requests. (To repeat only those that did not hold would give these
        a second chance.) Of the last of several trials late requests count as the cluster's doing:
        a limit is rather too low than too high.
        """
        errors, lab = self.errors, self._lab
        assert errors is not None
        for left in reversed(range(_AGAIN)):
            self._come_near(test)
            if question.after is not None:
                self._change(lab, question.after)
                beyond, at = [("beyond", self.spec.promise.window.s)], question.after.rtt_ms
                with self._users.sending(beyond, {"rtt_ms": at, "rtt_step": test.number}) as users:
                    users.finish()
            self._change(lab, question.network)
            if test.measured_rtt_ms is None:
                self._measure(question.network, test)
            constant = {"rtt_ms": question.network.rtt_ms, "rtt_step": test.number}
            settles_s = self._settle_s(question)
            allowed_ns = 1e6 * errors.allowed_ms
            came = run_trial(self._users, constant, settles_s, self._link, allowed_ns)
            span_ns, self._is_well = (came.since_ns, time.monotonic_ns()), came.broken is None
            late_ns = lab.lateness.during(*span_ns)
            if (late_ns is None or late_ns <= allowed_ns) and not (came.is_disturbed and left):
                return Trial(span_ns=span_ns, held=self._is_well, broken=came.broken)
        raise MachineLate(
            f"{self.name}: the network was more than {errors.allowed_ms:g} ms late in {_AGAIN} "
            "trials in a row, because this machine is too busy. End what else runs on it, or say "
            "how late it may be (`--max-network-error 50ms`)."
        )

    def _settle_s(self, question: Question) -> float:
        """How long a cluster is at work on a network before the promise has to hold.

        As long as the study has it, and until connections know how far apart their ends are. From
        beyond, until the promise has to hold again: what takes longer is hysteresis.
        """
        return settle_s(self.spec, question)

    def _measure(self, network: Network, test: TestedNetwork) -> None:
        """Measure the RTT, where neither jitter nor loss is in the way."""
        if network.jitter_ms or network.loss:
            return
        pairs = self._between.measure()
        known = [pair["measured_rtt_ms"] for pair in pairs if pair["measured_rtt_ms"] is not None]
        test.measured_rtt_ms = statistics.median(known) if known else None
        if wrong := [pair for pair in pairs if pair["verdict"] != "pass"]:
            reasons = "; ".join(wrong[0]["reasons"])
            self.session.warn(
                f"at an RTT of {network.rtt_ms:.4g} ms the network was off: {reasons}"
            )

    def _come_near(self, test: TestedNetwork) -> None:
        """Bring the sites near each other, and wait until the cluster serves; else restart it."""
        near = self.spec.plan.near
        self._change(self._lab, near)
        if self._is_well and self._leader == self._cluster.leader():
            wait_until(self._lab, time.monotonic() + NEAR_S + near.rtt_ms / 1000)
            return
        until_s = time.monotonic() + _WELL_WITHIN_S
        while True:
            with self._users.sending([("near", NEAR_S)], {"rtt_ms": near.rtt_ms}, few=True) as few:
                few.finish()
            if few.broken("near", 1.0) is None:
                self._is_well = True
                self._have_led()
                return
            if time.monotonic() > until_s:
                self._restart(test)
                until_s = time.monotonic() + _WELL_WITHIN_S

    def _have_led(self) -> None:
        """Have the node lead again that led at first: who leads is no matter of distance."""
        if self._leader != self._cluster.leader():
            with suppress(SystemFailed):
                self._cluster.make_ready(Wait(self._cluster.nodes, _WELL_WITHIN_S, self.progress))

    def _restart(self, test: TestedNetwork) -> None:
        if test.restarted:
            raise RunFailed(
                f"{self.name}: near each other again, the nodes do not serve, though all were "
                f"restarted. Look into {self.bundle.logs}."
            )
        test.restarted = True
        self.bundle.event("restart", self.name, "SIGKILL to every node at once")
        for node in self._cluster.nodes.values():
            node.stop(signal.SIGKILL)
        for node in self._cluster.nodes.values():
            node.start(self._lab)
        self._cluster.await_serving(self._ready_again())
        self._cluster.on_exit(self._lab.abort)

    def _verify(self, test: TestedNetwork, since: int) -> None:
        """Read what was written on a network from every node, now that these are near."""
        shared, write = self._users.shared, self.bundle.lines("verification.jsonl")
        ledger = shared.ledger
        answers: dict[str, set[str]] = {}

        def take(line: Mapping[str, Any]) -> None:
            write(line)
            if "found" in line and ledger.is_expected(line["key"]):
                answers.setdefault(line["key"], set()).add(line["found"])

        verified = verify(
            *(self._lab, self._cluster, shared.api, ledger, f"test {test.number}", _VERIFY_S),
            since=since,
            on_progress=lambda *_: None,
            write=take,
        )
        test.written = len(ledger.objects(since))
        test.lost, test.stale = missing(answers.values())
        test.unread = verified.counts.get("unread", 0)

    def _find_price(self) -> None:
        """Kill who leads, again and again, while the sites are near each other."""
        price, kills = Price(), self.spec.kills
        self._found.price = price
        near = TestedNetwork(number=len(self._found.tests), network=self.spec.plan.near)
        self._come_near(near)
        self.progress("measuring the price", 0, kills, "nobody sends a request")
        measure_idle(self._lab, price)
        if not self._found.leads:
            self.session.warn("no node says that it leads, so none was killed")
            return
        since, load = len(self._users.shared.ledger.objects()), self._users.shared
        timeouts = self.subject.system.timeouts(self.subject.options)
        waits_s = patience_s(max((timeout["ms"] for timeout in timeouts), default=0.0) / 1000)
        for number in range(kills):
            self.progress("measuring the price", number, kills, "killing who leads")
            constant = {"rtt_ms": near.network.rtt_ms, "rtt_step": near.number}
            heirs = f"heir{number + 1}-"
            takeover = kill_leader(load, constant, heirs, waits_s, self._ready_again)
            if takeover is None:
                self.session.warn("there is no node besides the one that leads; it was not killed")
                return
            price.kills = [*price.kills, takeover]
            self._write()
        self._is_well = False
        self._come_near(near)
        self._verify(near, since)
        price.written, price.lost, price.unread = near.written, near.lost, near.unread

    def _ready_again(self) -> Wait:
        ready_s = ready_timeout_s(self._lab.plan, self.prepared.study.ready_timeout)
        return Wait(self._cluster.nodes, ready_s, self.progress)

    # -- the whole -----------------------------------------------------------------------------

    def _fill(self) -> None:
        users, timeout_ms = self._users, 10_000
        load = users.load({"rtt_ms": self.spec.plan.near.rtt_ms}, self.bundle.sample)
        fill(load, users.place, _OBJECTS, timeout_ms, lambda *_: None)
        self.bundle.event("filled", self.name, FILL_OWNER)

    def _change(self, lab: Lab, network: Network) -> None:
        settings = {"rtt": f"{network.rtt_ms:.6f}ms", "jitter": f"{network.jitter_ms:.6f}ms"}
        lab.change("wan", **settings, loss=f"{100 * network.loss:.6f}%", origin=_ORIGIN)

    def _link_to_cut(self) -> str | None:
        """Return a WAN link of the target's site, as the seed draws it."""
        plan, chance = self.prepared.plan, random.Random(f"{self.prepared.seed}/cut")
        here = plan.node(self.prepared.target).site
        links = sorted(f"{link.a}/{link.b}" for link in plan.wan_links if here in (link.a, link.b))
        return chance.choice(links) if links and self.spec.promise.cut.ns else None

    def _regions(self) -> list[documents.Regions]:
        """Return the pairs of sites of the topology that limits are compared with."""
        if self.spec.regions is None:
            return []
        plan = resolve(load_topology(self.spec.regions))
        first = {site.name: site.nodes[0].name for site in plan.sites}
        return [
            documents.Regions(
                sites=(link.a, link.b), rtt_ms=plan.rtt_ms(first[link.a], first[link.b])
            )
            for link in plan.wan_links
        ]

    def _note(self, limits: Sequence[Limit]) -> None:
        self._found.limits = [
            documents.EnvelopeLimit(
                axis=limit.axis.name,
                at=limit.at,
                has_hysteresis=limit.has_hysteresis,
                **{name: getattr(limit, name) for name in _OF_LIMIT},
            )
            for limit in limits
        ]
        self._write()

    def _write(self) -> None:
        self.bundle.write_part(Envelopes, self._found)


_OF_LIMIT = ("inside", "outside", "changed", "back", "is_approached")


def _describe(question: Question, held: Sequence[bool]) -> str:
    network = question.network
    parts = [f"RTT {network.rtt_ms:.4g} ms"]
    parts += [f"± {network.jitter_ms:.3g} ms"] if network.jitter_ms else []
    parts += [f"{100 * network.loss:.3g} % lost"] if network.loss else []
    return f"{', '.join(parts)}: {sum(held)} of {len(held)} trials held"
