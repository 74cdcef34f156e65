"""Several workers at once, of which none outlives the call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

_POLL_S = 0.05

Worker = Callable[[threading.Event], object]
"""Works until it is done or the event is set."""


def run_all(workers: Sequence[Worker], stop: threading.Event) -> None:
    """Run the workers, each in a thread; return when all have ended.

    They end early when ``stop`` is set, when the caller is interrupted, and when one of them fails,
    whose error is raised.
    """
    if not workers:
        return
    ended = threading.Event()
    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            futures = [pool.submit(worker, ended) for worker in workers]
            waiting = set(futures)
            while waiting and not ended.is_set():
                done, waiting = wait(waiting, _POLL_S, FIRST_EXCEPTION)
                if stop.is_set() or any(future.exception() for future in done):
                    ended.set()
        finally:
            ended.set()
    for future in futures:
        future.result()
