"""At which RTTs a chain is evidence.

Two messages follow each other by chance as easily as by cause where a link takes less time than a
store takes to think; at RTT 0 every chain fits into every request. A link that takes long leaves
room for nothing but what was waited for. So the samples at the greatest RTT count, and those at
half of it and more, which say the same and make the shares steadier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

LEAST_RTT_MS = 20.0
"""Below it no chain counts: a link takes less than 10 ms, which is what a message that is tied to
the one before may take to leave (`wanlat.analysis.packets.chains.LOOSE_NS`)."""


def counting(samples: pd.DataFrame) -> NDArray[np.bool_]:
    """Which of `samples`, all of one system, were taken at an RTT that counts; shape (samples,).

    By the requested RTT, `rtt_ms`. Where that was not recorded nothing is known against them.
    """
    import numpy as np
    import pandas as pd

    if "rtt_ms" not in samples.columns:
        return np.ones(len(samples), dtype=bool)
    rtt_ms = pd.to_numeric(samples["rtt_ms"]).to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(rtt_ms).any():
        return np.ones(len(samples), dtype=bool)
    return np.asarray(rtt_ms >= max(LEAST_RTT_MS, np.nanmax(rtt_ms) / 2), dtype=bool)
