"""Does the emulated network do what was requested? Measured with real packets, pair by pair.

Passes over every ordered pair of nodes (``passes``; ``document.calibrate`` runs them):

1. *bare path*: every impairment off, for a moment. What the path itself takes; reported beside
   the rest and subtracted from nothing;
2. *delay*: requested jitter off, so that the error of every single packet is known;
3. *jitter* (``delays``): each direction's delays against the distribution that was requested;
4. *delivery* (``counts``): what is lost, doubled, damaged or overtaken;
5. *rate* (``rate``): trains of packets, and how far apart they arrive.

The third is for paths with jitter, the fourth for those and for paths that are to lose or change
packets, the last for those with a rate. A pair that looks off goes through all of them again with
more packets, and is judged by everything that was measured of it (``rounds``, ``judgement``).
``live`` measures links while a store runs on them.
"""

from wanlat.emulator.calibration.document import calibrate
from wanlat.emulator.calibration.pairs import pairs_of
from wanlat.emulator.calibration.rounds import Limits, blame
from wanlat.emulator.calibration.tolerance import Tolerance
from wanlat.emulator.prober import Pair

__all__ = ["Limits", "Pair", "Tolerance", "blame", "calibrate", "pairs_of"]
