"""An event that signals set is heeded by whoever waits, and never waits for itself."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from wanlat.topologies.stop import Stop

UNDER_SIGNALS = """
import signal, time
import pytest

from wanlat.topologies.stop import Stop
stop = Stop()
def alarm(*_):
    stop.set()
    stop.clear()
    signal.setitimer(signal.ITIMER_REAL, 0.0001)
signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.0001)
until = time.monotonic() + 2
while time.monotonic() < until:
    stop.wait(0.0001)
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_a_handler_may_set_it_wherever_it_interrupts_who_waits() -> None:
    subprocess.run([sys.executable, "-c", UNDER_SIGNALS], check=True, timeout=30)


def test_a_wait_lasts_its_time_and_ends_when_it_is_set() -> None:
    stop = Stop()
    began = time.monotonic()
    assert not stop.wait(0.03) and time.monotonic() - began >= 0.03
    threading.Timer(0.05, stop.set).start()
    assert stop.wait(30) and stop.is_set() and stop.wait(30)
    stop.clear()
    assert not stop.wait(0.01)


@pytest.mark.parametrize("thread", ["main", "another"])
def test_a_signal_ends_a_wait_of_the_main_thread_whichever_takes_it(thread: str) -> None:
    stop = Stop()
    before = signal.signal(signal.SIGUSR1, lambda *_: stop.set())

    def send() -> None:
        main = threading.main_thread().ident
        assert main is not None
        taker = main if thread == "main" else threading.get_ident()
        signal.pthread_kill(taker, signal.SIGUSR1)

    began = time.monotonic()
    try:
        threading.Timer(0.05, send).start()
        assert stop.wait(30) and time.monotonic() - began < 5
    finally:
        signal.signal(signal.SIGUSR1, before)
