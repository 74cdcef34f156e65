"""What a backend does not do, it refuses; what it does not refuse is measured in this suite."""

from __future__ import annotations

import pytest

from tests.calibration.bench import Bench
from tests.calibration.test_delays import TABLE
from tests.emulator.plans import mesh, ms
from wanlat.emulator.lab import Lab
from wanlat.emulator.links import wan
from wanlat.topologies.errors import MachineError
from wanlat.topologies.resolve import GilbertElliott

BURSTS = GilbertElliott(p=0.01, r=0.3)
MODEL = {
    "uniform": ms(20, jitter=5),
    "normal": ms(20, jitter=5, distribution="normal"),
    "pareto": ms(20, jitter=5, distribution="pareto"),
    "table": ms(20, jitter=5, distribution="table", table=TABLE),
    "reorder": ms(20, jitter=5, reorder=True),
    "reorder and rate": ms(20, jitter=5, reorder=True, rate_bps=10_000_000),
    "overtake": ms(20, overtake=0.01),
    "loss": ms(20, loss=0.01),
    "bursts": ms(20, bursts=BURSTS),
    "bursts and duplicate": ms(20, bursts=BURSTS, duplicate=0.01),
    "duplicate": ms(20, duplicate=0.01),
    "corrupt": ms(20, corrupt=0.01),
    "rate": ms(20, rate_bps=10_000_000),
    "queue": ms(20, rate_bps=10_000_000, queue_bytes=100_000),
}
REFUSED = {"wire": {"corrupt"}, "netem": {"reorder and rate", "bursts and duplicate"}}


def test_a_backend_refuses_what_its_documentation_says_and_nothing_else(bench: Bench) -> None:
    assert {name for name, asked in MODEL.items() if bench.refusal(asked)} == REFUSED[bench.backend]


def test_a_refusal_is_an_error_and_changes_nothing(bench: Bench) -> None:
    bench.ask(ms(7))
    before = bench.lab.impairments
    for name in REFUSED[bench.backend]:
        with pytest.raises(MachineError):
            bench.lab.change({wan("dc1", "dc2"): MODEL[name]})
        with (
            pytest.raises(MachineError),
            Lab(mesh(2, wan=MODEL[name]), backend=bench.lab.backend),  # type: ignore[arg-type]
        ):
            pass
    assert bench.lab.impairments == before
