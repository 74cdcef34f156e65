"""These tests need a kernel with sch_netem; ``make test-kernel`` boots one."""

from __future__ import annotations

import os

import pytest

from emulator.lab import Lab
from emulator.prober import Prober
from tests.emulator.plans import mesh, ms
from tests.kernel.boot import BACKEND_VARIABLE
from topologies.resolve import Plan


@pytest.fixture(scope="session", autouse=True)
def kernel_with_netem() -> None:
    with Lab(mesh(1)) as lab:
        if lab.backend == "netem":
            return
    if os.environ.get(BACKEND_VARIABLE) == "netem":
        pytest.exit("this kernel was booted for its netem, and has none", returncode=3)
    pytest.skip("this kernel has no sch_netem: run these with `make test-kernel`")


def _median_rtt_ms(plan: Plan) -> float:
    with Lab(plan, backend="netem") as lab, Prober(lab, ["n1", "n2"]) as prober:
        echoes = prober.measure([("n1", "n2")], 200, 0.005, 0.5)["n1", "n2"]
    return sorted(echoes.rtt_ns)[100] / 1e6


@pytest.fixture(scope="session")
def bare_ms() -> float:
    """Median round trip without any delay: what this kernel's path itself costs."""
    return _median_rtt_ms(mesh(2))


@pytest.fixture(scope="session")
def stage_ms(bare_ms: float) -> float:
    """How late this kernel's timer lets a packet leave one netem, at the median.

    A round trip over a WAN link passes two of them, one between neighbours four. User-Mode
    Linux has no fine timers: a stage costs some 50 us there, against a few on real hardware.
    """
    return max(0.0, (_median_rtt_ms(mesh(2, wan=ms(1))) - 2 - bare_ms) / 2)
