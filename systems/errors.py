"""What can go wrong with a store, as errors the command line can show."""

from __future__ import annotations

from wanlat.topologies.errors import MachineError, RunFailed


class SystemMissing(MachineError):
    """A store's binary is not on this machine, or is not the one that was installed."""


class SystemFailed(RunFailed):
    """A store was started and died, or did not become ready in time.

    The message quotes the last lines of the node's log and names the file that has all of it.
    """


class InstallFailed(MachineError):
    """A build from source ended with an error. The message names the whole log."""
