"""What each packet of one request's time was: the request's, background, or left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from analysis.packets.chains import reached
from analysis.packets.messages import messages_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from analysis.packets.background import Background
    from analysis.packets.record import Record

    Ints = NDArray[np.int64]

Kind = Literal["request", "background", "left over", "acknowledgement", "retransmission", "closing"]
"""`request`: a message that may be its own, whether anybody waited for it or not. `left over`:
one that is not, and no background either: an earlier request's. `closing`: FIN and RST."""


def kinds(
    record: Record, sample: pd.Series, background: Background | None = None
) -> tuple[Ints, list[Kind]]:
    """The places in the record of what entered a link during a request, and what each was.

    `sample` is a row of the bundle's samples. Empty where its request was not acknowledged or lies
    outside the record.
    """
    import numpy as np

    begin_ns, total_ns = sample["start_ns"], sample["total_ns"]
    own = reached(record, sample.to_frame().T, background)
    if own is None:
        return np.zeros(0, np.int64), []
    begin, end = np.searchsorted(record.entry_ns, [begin_ns, begin_ns + total_ns], side="left")
    places = np.arange(begin, end, dtype=np.int64)
    resent = messages_of(record).is_resent
    bare = record.is_bare_ack

    def kind(place: int) -> Kind:
        if place in own:
            return "acknowledgement" if bare[place] else "request"
        if background is not None and background.packets[place]:
            return "background"
        if resent[place]:
            return "retransmission"
        if bare[place]:
            return "acknowledgement"
        has_data = record.payload_bytes[place] or record.flags[place] & 2
        return "left over" if has_data or not record.is_tcp[place] else "closing"

    return places, [kind(int(place)) for place in places]
