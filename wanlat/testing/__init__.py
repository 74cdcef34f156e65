"""What tests of a store are made of: a probe, faults, whole drills, and a bundle of each test.

`wanlat.pytest_plugin` hands them out as fixtures.
"""

from wanlat.testing.drills import DrillResult, Drills
from wanlat.testing.faults import Faults
from wanlat.testing.probe import Probe

__all__ = ["DrillResult", "Drills", "Faults", "Probe"]
