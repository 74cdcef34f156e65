"""The objects that are there before anything is measured."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence

from wanlat.experiments.drill.client import Load
from wanlat.experiments.drill.objects import Object
from wanlat.experiments.drill.parallel import run_all
from wanlat.experiments.drill.prober import Prober, Unanswered, spawn_on
from wanlat.experiments.drill.rows import Place, never_answered, sampled
from wanlat.probes.errors import ProbeFailed

PROCESSES = 8
_ATTEMPTS = 5
_PAUSE_S = 0.5
OWNER = "filled"


def fill(
    load: Load,
    place: Place,
    count: int,
    deadline_ms: int,
    *,
    stop: threading.Event,
    on_progress: Callable[[int, int], object],
    processes: int = PROCESSES,
) -> None:
    """Put ``count`` objects through one client, several at a time, all of them on the ledger.

    What is not acknowledged is put again, the same object at the same key, which is another write
    on the ledger. ``on_progress`` gets how many are there, of how many; it and ``load.on_row`` are
    called one at a time, rows with phase ``prepare`` and without a due time. Returns early when
    ``stop`` is set. Raises ProbeFailed when an object is not acknowledged in five attempts.
    """
    api, ledger = load.api, load.ledger
    header = api.header(load.cluster, place.target, deadline_ms, load.object_bytes)
    api.make_ready(load.cluster, spawn_on(load.lab, place.node), header)
    keys = [api.key(load.seed, OWNER, number) for number in range(count)]
    work = _Work([ledger.describe(key, load.object_bytes) for key in keys], on_progress)

    def fill_some(ended: threading.Event) -> None:
        with Prober(load.lab, place.node, header, ended) as prober:
            while not ended.is_set() and (taken := work.take()):
                _put(load, place, prober, *taken, work, ended)

    run_all([fill_some] * min(processes, count), stop)


def _put(
    load: Load,
    place: Place,
    prober: Prober,
    seq: int,
    what: Object,
    work: _Work,
    ended: threading.Event,
) -> None:
    """Put one object, in as many attempts as it takes."""
    for attempt in range(1, _ATTEMPTS + 1):
        request = load.api.put(seq, what, "prepare")
        number = load.ledger.put(what, client=place.name, target=place.target)
        try:
            sample = prober.ask(request)
        except Unanswered as gone:
            now_ns = time.monotonic_ns()
            came = never_answered(seq, request.endpoint, str(gone), gone.handed_ns, now_ns)
        else:
            came = sampled(sample)
        load.ledger.complete(number, came["outcome"], came["error"])
        placement = load.api.placement(load.cluster, place.target, what.key)
        row = place.row(
            load.constant,
            came,
            phase="prepare",
            way="write",
            key=what.key,
            placement=placement,
            due_ns=None,
        )
        with work.lock:
            load.on_row(row)
        if came["outcome"] == "ok":
            work.is_done()
            return
        if ended.wait(_PAUSE_S * attempt):
            return
    raise ProbeFailed(
        f"The store could not be filled: {request.endpoint} of {what.key} through {place.target} "
        f"failed {_ATTEMPTS} times, at last with {came['error']} ({came['outcome']}). "
        "Its log may say why."
    )


class _Work:
    """What is still to be put."""

    def __init__(
        self, objects: Sequence[Object], on_progress: Callable[[int, int], object]
    ) -> None:
        self.lock = threading.Lock()
        self._waiting = queue.SimpleQueue[tuple[int, Object]]()
        for numbered in enumerate(objects):
            self._waiting.put(numbered)
        self._total = len(objects)
        self._done = 0
        self._on_progress = on_progress

    def take(self) -> tuple[int, Object] | None:
        try:
            return self._waiting.get_nowait()
        except queue.Empty:
            return None

    def is_done(self) -> None:
        with self.lock:
            self._done += 1
            self._on_progress(self._done, self._total)
