"""The suite that every backend passes: WANLAT_TEST_BACKEND says which one, wire by default.

Inside User-Mode Linux (`make test-kernel`) it is netem. Each test sets what it needs on the links
of a lab that the others use too. What the machine is late by is not tested here: nothing may be
early, counts are exact, and a stated share of the packets may be late.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.calibration.bench import SITES, Bench
from tests.emulator.plans import mesh, ms
from tests.needs import machine_lacks_a_lab
from wanlat.emulator.calibration import Tolerance
from wanlat.emulator.lab import BackendName, Lab
from wanlat.topologies.errors import MachineError


@pytest.fixture(scope="session")
def backend() -> BackendName:
    """The backend under test."""
    chosen = os.environ.get("WANLAT_TEST_BACKEND", "wire")
    if chosen not in ("netem", "wire"):
        raise pytest.UsageError(f"WANLAT_TEST_BACKEND is {chosen!r}, neither netem nor wire")
    return "netem" if chosen == "netem" else "wire"


@pytest.fixture(scope="session")
def bench(backend: BackendName) -> Iterator[Bench]:
    """A lab of sites with one node each, whose links may be set to anything."""
    # With a rate it is built such that TCP's and UDP's large segments are cut up before links.
    plan = mesh(SITES, wan=ms(10, rate_bps=1_000_000_000))
    with ExitStack() as stack:
        try:
            lab = stack.enter_context(Lab(plan, backend=backend, seed=4711))
        except MachineError as error:
            if os.environ.get("WANLAT_REQUIRE") or not machine_lacks(backend):
                raise
            pytest.skip(f"this machine has no {backend}: {error}")
        yield stack.enter_context(Bench(lab))


def machine_lacks(backend: BackendName) -> bool:
    """Whether there can be no lab here, or the kernel refuses to set netem on a link."""
    if machine_lacks_a_lab():
        return True
    if backend == "wire":
        return False
    netem = ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    namespace = ["unshare", "--user", "--map-root-user", "--net"]
    done = subprocess.run([*namespace, *netem], capture_output=True, check=False)
    return done.returncode == 2  # so says tc that the kernel refuses


@pytest.fixture(scope="session")
def tolerance(bench: Bench) -> Tolerance:
    """The usual tolerance, on top of what this kernel's path and its timers cost at least.

    Stragglers are not held against the network: others compute on a machine that tests.
    """
    bare_ms = bench.least_rtt_ms(ms(0))
    stage_ms = max(0.0, (bench.least_rtt_ms(ms(1)) - 2 - bare_ms) / 2)
    usual = Tolerance()
    return Tolerance(
        median_ms=usual.median_ms + bare_ms + 2 * stage_ms,
        near_median_ms=usual.near_median_ms + bare_ms + 4 * stage_ms,
        p99_ms=200,
        edge_ms=200,
    )
