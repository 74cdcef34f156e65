"""How much longer a write takes than a read of the same load.

Both slow down in the same second, for the same reason, so their ratio is known far better than two
independent means would let it: seconds are resampled with the reads and the writes in them.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from wanlat.analysis.load.model import Estimate, Steady
from wanlat.analysis.load.published import OPERATIONS, READ, WRITE
from wanlat.analysis.load.resampling import ratio_of_ratios, summed

if TYPE_CHECKING:
    from wanlat.analysis.load.records import Records, Values


def write_over_read(records: Records, steady: Steady, seed: int) -> Estimate | None:
    """Mean latency of writes / that of reads, of the part that figures are of; None without both.

    GetObject and PutObject; None for a load without one of them.
    """
    import numpy as np

    names = {what: name for name, what in OPERATIONS.items()}
    span = (steady.begin_s, steady.end_s) if steady.is_steady else (0.0, records.until_s)
    count = max(1, int((span[1] - span[0]) / steady.bin_s + 1e-9))
    inside = records.is_ok & (records.ended_s >= span[0]) & (records.ended_s < span[1])

    def sums(what: str) -> tuple[Values, Values]:
        mine = inside & (records.operation == names[what])
        ended_s = records.ended_s[mine]
        bins = np.minimum(((ended_s - span[0]) / steady.bin_s).astype(int), count - 1)
        lasted_s = ended_s - records.began_s[mine]
        return summed(bins, lasted_s, count), summed(bins, np.ones(bins.size), count)

    name = "\0".join((*records.series, "write / read")).encode()
    return ratio_of_ratios(sums(WRITE), sums(READ), [abs(seed), zlib.crc32(name)])
