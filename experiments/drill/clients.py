"""All clients of a drill at work, each in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from wanlat.experiments.drill.client import Client
from wanlat.experiments.drill.schedule import Span


class Clients:
    """Clients that run beside each other. One that fails stops them all."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = clients
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []

    def start(self, origin_ns: int, spans: Sequence[Span], stop: threading.Event) -> None:
        """Start them all; ``stop`` ends them within a moment, and is set when one fails."""
        for client in self._clients:
            thread = threading.Thread(
                target=self._run, args=(client, origin_ns, spans, stop), name=client.name
            )
            thread.daemon = True  # an interpreter that ends does not wait for it
            self._threads.append(thread)
            thread.start()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for them to be done; return whether they are."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(None if until is None else max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def check(self) -> None:
        """Raise what the first of them failed with, if one did."""
        if self._errors:
            raise self._errors[0]

    def _run(
        self, client: Client, origin_ns: int, spans: Sequence[Span], stop: threading.Event
    ) -> None:
        try:
            client.run(origin_ns, spans, stop)
        except BaseException as error:
            self._errors.append(error)
            stop.set()
