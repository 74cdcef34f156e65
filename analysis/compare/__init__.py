"""Two bundles held against each other: which endpoints changed, and whether any became worse.

docs/compare.md defines every figure and verdict. `compare` is the way in.
"""

from wanlat.analysis.compare.comparison import compare
from wanlat.analysis.compare.model import Comparison, Kind, Verdict
from wanlat.analysis.compare.thresholds import Limit, Thresholds

__all__ = ["Comparison", "Kind", "Limit", "Thresholds", "Verdict", "compare"]
