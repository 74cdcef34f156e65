"""Lossy: links lose a part of their packets."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator

from wanlat.emulator.changes import Settings as Change
from wanlat.emulator.faults.fault import Fault
from wanlat.emulator.faults.link_fault import LinkFault
from wanlat.emulator.links import Direction
from wanlat.topologies.model import Bursts, Loss
from wanlat.topologies.units import Fraction
from wanlat.topologies.wording import show


def _some(loss: Any) -> Any:
    if loss == Fraction(0):
        raise ValueError(f"{show(str(loss))} changes nothing; give more than that")
    if loss == Fraction(1):
        raise ValueError(f"{show(str(loss))} lets nothing through: that is the fault `blackhole`")
    return loss


class Lossy(LinkFault):
    """``loss`` of the packets are lost, in each direction that is named: 5 %, or in bursts."""

    kind = "lossy"

    class Settings(Fault.Settings):
        """The part of the packets, or the chain of Gilbert and Elliott."""

        loss: Annotated[Loss, AfterValidator(_some)]

    @property
    def detail(self) -> str:
        """How much is lost."""
        loss = self.settings.loss
        if isinstance(loss, Bursts):
            chain = ", ".join(
                f"{name} {value}" for name, value in loss if name in loss.model_fields_set
            )
            return f"packets lost in bursts ({chain})"
        return f"{loss} of packets lost"

    def change(self, direction: Direction) -> Change:  # noqa: ARG002
        """Return the loss that takes the place of the link's own."""
        return {"loss": self.settings.loss}
