"""What can go wrong with the probe itself. A request that fails is a sample, not an error."""

from wanlat.topologies.errors import RunFailed


class ProbeFailed(RunFailed):
    """The probe could not do its work: it ended, fell silent, or could not prepare the store."""
