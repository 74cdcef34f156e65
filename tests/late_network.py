"""The command line for tests whose claim is not how punctual this machine is.

The emulated network is measured as ever and written into the bundle; packets that are late refuse
nothing, and no request is sent again for them. So a busy machine fails no test of something else,
and no test has to be repeated. Lost or overtaken packets still refuse a run, and what calibration
says of a network that is wrong is tested in tests/calibration and tests/emulator.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent

_PROGRAM = f"""
import sys
sys.path.insert(0, {str(CHECKOUT)!r})
from tests.late_network import accept_late_packets
accept_late_packets(sys.argv[1] if sys.argv[1:] else "")
from wanlat.start import main
main()
"""


def command(*arguments: str) -> list[str]:
    """Return a ``wanlat`` command that measures on a network of late packets too."""
    return [sys.executable, "-c", _PROGRAM, *arguments]


def accept_late_packets(subcommand: str) -> None:
    """Have this process accept any delay above the requested one, whichever calibration finds it.

    ``subcommand``: what it does, ``run``, ``trace``, ``drill`` or ``calibrate``; of
    others nothing is changed.
    """
    for where, name, value in _changes(subcommand):
        assert hasattr(where, name), f"{where.__name__} has no {name}: change {__name__}"
        setattr(where, name, value)


@contextmanager
def accepting_late_packets(subcommand: str) -> Iterator[None]:
    """The same for a while."""
    changes = list(_changes(subcommand))
    before = [getattr(where, name) for where, name, _ in changes]
    accept_late_packets(subcommand)
    try:
        yield
    finally:
        for (where, name, _), value in zip(changes, before, strict=True):
            setattr(where, name, value)


def _changes(subcommand: str) -> Iterator[tuple[Any, str, Any]]:
    """Yield what is replaced in which module, by what."""
    if subcommand not in ("run", "trace", "drill", "calibrate"):
        return
    from wanlat.emulator import calibration

    any_delay = calibration.Tolerance(
        median_ms=1e6, near_median_ms=1e6, p99_ms=1e6, edge_ms=1e6, rate=1e6, alpha=0.0
    )
    if subcommand == "calibrate":
        yield calibration, "calibrate", partial(calibration.calibrate, tolerance=any_delay)
        return
    from wanlat.experiments import calibration_gate

    prove = calibration_gate.prove

    def measured(lab: Any, tell: Any, *_: Any, **named: Any) -> Any:
        return prove(lab, tell, any_delay, **named)

    if subcommand == "drill":
        from wanlat.emulator.calibration import live
        from wanlat.experiments import session
        from wanlat.experiments.drill import faults

        yield session, "prove", measured
        yield faults, "recalibrate", partial(live.recalibrate, tolerance=any_delay)
    else:
        from wanlat.emulator.calibration import live
        from wanlat.experiments import session

        yield session, "prove", measured
        yield live, "RTT_STEP", any_delay
    from wanlat.experiments.network_error import NetworkErrors

    yield NetworkErrors, "accepts_all", True
