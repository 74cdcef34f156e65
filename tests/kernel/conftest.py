"""These tests need a kernel with sch_netem; ``make test-kernel`` boots one."""

from __future__ import annotations

import os

import pytest

from tests.emulator.plans import mesh
from tests.kernel.boot import BACKEND_VARIABLE
from wanlat.emulator.lab import Lab


@pytest.fixture(scope="session", autouse=True)
def kernel_with_netem() -> None:
    with Lab(mesh(1)) as lab:
        if lab.backend == "netem":
            return
    if os.environ.get(BACKEND_VARIABLE) == "netem":
        pytest.exit("this kernel was booted for its netem, and has none", returncode=3)
    pytest.skip("this kernel has no sch_netem: run these with `make test-kernel`")
