"""What can be wrong with a bundle, said so that its owner can act on it."""


class BundleError(Exception):
    """A bundle cannot be read or its report cannot be written.

    The message is one readable paragraph: what is wrong, in which file, and the way out.
    """


class NoSamplesError(BundleError):
    """The bundle is sound but holds no measured request, so there is nothing to report."""
