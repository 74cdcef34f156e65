"""Waiting until the nodes of a cluster are ready: with a deadline, watching their processes."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from wanlat.systems.engine.process import NodeProcess
from wanlat.systems.engine.request import NoAnswer
from wanlat.systems.placement import largest_rtt_ms

if TYPE_CHECKING:
    from wanlat.topologies.resolve import Plan
    from wanlat.topologies.units import Duration

_POLL_S = 0.1
_REPORT_EVERY_S = 1.0

_READY_RTTS = 600

WhyNot = Callable[[str], str | None]
"""Takes a node's name; returns why it is not ready yet, None when it is."""


def ready_timeout_s(plan: Plan | None, near: Duration) -> float:
    """Return how long nodes on a topology (None: near each other) may take to be ready.

    ``near``: that without any distance. Joining, electing and handing over take round trips, and
    timeouts of a store that are multiples of them: 600 of the largest RTT come to it, which is 60 s
    at 100 ms and 240 s at 400 ms.
    """
    return near.s + (_READY_RTTS * largest_rtt_ms(plan) / 1000 if plan else 0.0)


def distance_remark(plan: Plan) -> str:
    """Return the sentence, for whoever waited in vain, that distance may be why; "" without any."""
    rtt_ms = largest_rtt_ms(plan)
    if not rtt_ms:
        return ""
    return (
        f" The largest RTT of topology {plan.name} is {rtt_ms:g} ms, and distance may be why: "
        "raise a study's `ready_timeout`, or what a drill's `timeouts` has for it (--set), and "
        "the store's own timeouts where its options set them."
    )


class Wait:
    """One deadline for all the steps of getting a cluster ready."""

    def __init__(
        self,
        nodes: Mapping[str, NodeProcess],
        timeout_s: float,
        on_progress: Callable[[str], None],
        poll_s: float = _POLL_S,
    ) -> None:
        self._nodes = nodes
        self._timeout_s = timeout_s
        self._on_progress = on_progress
        self._poll_s = poll_s
        self._started = time.monotonic()
        self._reported_s = 0.0

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline; never below a tenth, for use as a socket's time-out."""
        return max(self._timeout_s - self._elapsed_s(), 0.1)

    def for_all(
        self,
        step: str,
        why_not: WhyNot,
        names: Iterable[str] | None = None,
        *,
        on_met: Callable[[str], object] = lambda _: None,
        remark: str = "",
    ) -> None:
        """Poll all nodes (or those in ``names``), until each one is ready.

        NoAnswer raised by ``why_not`` is a reason too; what else it raises is raised here. A
        process that ends, of whichever node, ends the wait at once, also while another node's
        answer is awaited. Raises SystemFailed for that, and when the time is over.

        ``why_not`` runs in a thread a node, so that nodes that answer slowly do so together;
        ``on_met`` is called with each node as it becomes ready. ``remark`` ends the error of a time
        that is over.
        """
        reasons = dict.fromkeys(self._nodes if names is None else names, "it has not answered")
        count, over = len(reasons), threading.Event()
        answers: queue.SimpleQueue[tuple[str, str | BaseException | None]] = queue.SimpleQueue()

        def poll(name: str) -> None:
            answer: str | BaseException | None = ""
            while isinstance(answer, str) and not over.is_set():
                try:
                    answer = why_not(name)
                except NoAnswer as silence:
                    answer = str(silence)
                except BaseException as error:  # for the thread that waits
                    answer = error
                answers.put((name, answer))
                if answer is not None:
                    over.wait(self._poll_s)

        self._report(step, 0, count)
        for name in reasons:
            # A daemon: Ctrl-C must not wait for an answer that may take until the deadline.
            threading.Thread(target=poll, args=(name,), name=f"poll {name}", daemon=True).start()
        try:
            while reasons:
                self._watch(step, reasons, remark)
                with suppress(queue.Empty):
                    name, answer = answers.get(timeout=self._poll_s)
                    if isinstance(answer, BaseException):
                        raise answer
                    if answer is not None:
                        reasons[name] = answer
                        continue
                    del reasons[name]
                    on_met(name)
                    self._report(step, count - len(reasons), count)
        finally:
            over.set()

    def _watch(self, step: str, pending: Mapping[str, str], remark: str) -> None:
        for node in self._nodes.values():
            node.check()
        if self._elapsed_s() <= self._timeout_s:
            return
        name, reason = next(iter(pending.items()))
        others = f" (and {len(pending) - 1} more nodes)" if len(pending) > 1 else ""
        raise self._nodes[name].failure(
            f"not ready after {self._timeout_s:g} s, waiting for: {step}{others}: {reason}",
            remark,
        )

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started

    def _report(self, step: str, done: int, count: int) -> None:
        """Report the beginning of a step, and then how far it is, now and then."""
        elapsed_s = self._elapsed_s()
        if done and elapsed_s - self._reported_s < _REPORT_EVERY_S:
            return
        self._reported_s = elapsed_s
        # A step that one node does on behalf of all has nothing to count.
        counted = f": {done} of {count} nodes" if count == len(self._nodes) else ""
        self._on_progress(f"{step}{counted} ({elapsed_s:.1f} s)")
