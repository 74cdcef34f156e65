"""wanlat: what does distance do to this store?

The public API: a topology is loaded, resolved to a plan and made real by a lab.

    from wanlat import Lab, load_topology, resolve

    with Lab(resolve(load_topology("five-sites"))) as lab:
        print(lab.run("n1", ["ip", "route"]).stdout)

A bundle that a run left is opened as frames:

    from wanlat import open_bundle

    print(open_bundle("results/mine").figures["endpoints"])
"""

# No import when this is run: `python -m wanlat` would find a `typing.py` of the current directory.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wanlat.bundle.errors import BundleError
    from wanlat.emulator.lab import Lab, LabNode
    from wanlat.emulator.process import Process
    from wanlat.opened import OpenBundle, open_bundle
    from wanlat.topologies.errors import MachineError, RunFailed, UserError, WanlatError
    from wanlat.topologies.load import load as load_topology
    from wanlat.topologies.model import Topology
    from wanlat.topologies.resolve import Impairment, Plan, resolve
    from wanlat.topologies.version import VERSION as __version__  # noqa: N811

__all__ = [
    "BundleError",
    "Impairment",
    "Lab",
    "LabNode",
    "MachineError",
    "Plan",
    "Process",
    "RunFailed",
]
__all__ += ["OpenBundle", "Topology", "UserError", "WanlatError", "__version__", "load_topology"]
__all__ += ["open_bundle", "resolve"]

# Every room lies in this package, so that this file is read at each start: by the command line,
# and by each lab's processes. What it offers is imported when it is first asked for.
_HOMES = {
    "__version__": "topologies.version:VERSION",
    "load_topology": "topologies.load:load",
    **dict.fromkeys(("Lab", "LabNode"), "emulator.lab"),
    **dict.fromkeys(("OpenBundle", "open_bundle"), "opened"),
    "BundleError": "bundle.errors",
    "Process": "emulator.process",
    "Topology": "topologies.model",
    **dict.fromkeys(("Impairment", "Plan", "resolve"), "topologies.resolve"),
    **dict.fromkeys(("MachineError", "RunFailed", "UserError", "WanlatError"), "topologies.errors"),
}


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'wanlat' has no attribute {name!r}")
    module, _, renamed = _HOMES[name].partition(":")
    value = globals()[name] = getattr(import_module(f"wanlat.{module}"), renamed or name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
