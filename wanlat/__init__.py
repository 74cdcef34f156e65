"""wanlat: what does distance do to this store?

The public API: a topology is loaded, resolved to a plan and made real by a lab.

    from wanlat import Lab, load_topology, resolve

    with Lab(resolve(load_topology("five-sites"))) as lab:
        print(lab.run("n1", ["ip", "route"]).stdout)
"""

from emulator.lab import Lab, LabNode
from emulator.process import Process
from topologies.errors import MachineError, RunFailed, UserError, WanlatError
from topologies.load import load as load_topology
from topologies.model import Topology
from topologies.resolve import Impairment, Plan, resolve
from topologies.version import VERSION

__version__ = VERSION

__all__ = [
    "Impairment",
    "Lab",
    "LabNode",
    "MachineError",
    "Plan",
    "Process",
    "RunFailed",
    "Topology",
    "UserError",
    "WanlatError",
    "__version__",
    "load_topology",
    "resolve",
]
