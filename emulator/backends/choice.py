"""Which backend a lab gets, and whether it can do what is requested."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wanlat.emulator.backends import netem, wire
from wanlat.emulator.links import Direction
from wanlat.topologies.errors import MachineError
from wanlat.topologies.resolve import Impairment

_UNSUPPORTED: dict[str, Callable[[Impairment], str | None]] = {
    "netem": netem.unsupported,
    "wire": wire.unsupported,
}


def check(backend: str, requested: Mapping[Direction, Impairment]) -> None:
    """Raise MachineError when ``backend`` does not apply all that is requested."""
    for direction, impairment in requested.items():
        reason = _UNSUPPORTED[backend](impairment)
        if reason is not None:
            others = [
                name
                for name, unsupported in _UNSUPPORTED.items()
                if unsupported(impairment) is None
            ]
            way_out = f"Use --backend {others[0]}." if others else "No backend does."
            raise MachineError(
                f"The backend {backend} does not do {reason}, which is requested of the link "
                f"{direction}. {way_out}"
            )


def choose(
    wanted: str | None, requested: Mapping[Direction, Impairment], *, netem_available: bool
) -> str:
    """Return the backend of a lab: the one that is wanted, or the one that fits.

    Where ``wanted`` is None, it is netem if the kernel has it and it does all that is
    requested, else wire. Raises MachineError when the backend does not do that.
    """
    fits = netem_available and all(
        netem.unsupported(impairment) is None for impairment in requested.values()
    )
    chosen = wanted or ("netem" if fits else "wire")
    check(chosen, requested)
    return chosen
