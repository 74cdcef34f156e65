"""What can be wrong with a bundle, said so that its owner can act on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class BundleError(Exception):
    """A bundle cannot be read or its report cannot be written.

    The message is one readable paragraph: what is wrong, in which file, and the way out. It is one
    line without two colons in a row, whatever the bundle's words in it are: a CI might obey them.
    """

    def __init__(self, message: str) -> None:
        """Keep the message as one line."""
        super().__init__(" ".join(message.splitlines()).replace("::", ":\N{WORD JOINER}:"))


class NoSamplesError(BundleError):
    """The bundle is sound but holds no measured request, so there is nothing to report."""


@contextmanager
def refusing(directory: Path) -> Iterator[None]:
    """Turn whatever reading a bundle runs into, and nobody foresaw, into a BundleError.

    Files are checked as they are read, but not every value in them: that of a claim, for example.
    """
    try:
        yield
    except BundleError:
        raise
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        met = f"{type(error).__name__}: {error}"
        if trace is not None:
            met += f", in {Path(trace.tb_frame.f_code.co_filename).name} line {trace.tb_lineno}"
        raise BundleError(
            f"{directory} is damaged: its files are readable, but a value in one of them is not "
            f"what it should be ({met}). If nobody changed the bundle this is a mistake of "
            "wanlat's; report it with the manifest.json. Otherwise run the study again."
        ) from error
