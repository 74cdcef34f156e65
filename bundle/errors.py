"""What can be wrong with a bundle, worded so that its owner can act on it."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_COMMANDS = re.compile(r"(?<=:)(?=:)|(?<=##)(?=\[|vso\[)")


def one_line(text: str) -> str:
    """Text from a bundle as one line, in which no CI finds a command, wherever it is wrapped.

    GitHub obeys lines that begin with two colons, and like Azure what follows two number signs: a
    word joiner, which is not seen, parts them.
    """
    return _COMMANDS.sub("\N{WORD JOINER}", re.sub(r"\s+", " ", text).strip())


class BundleError(Exception):
    """A bundle cannot be read or its report cannot be written.

    The message is one readable paragraph: what is wrong, in which file, and the way out. It is one
    line without two colons in a row, whatever the bundle's words in it are: a CI might obey them.
    """

    def __init__(self, message: str) -> None:
        """Keep the message as one line."""
        super().__init__(one_line(message))


class NoSamplesError(BundleError):
    """The bundle is sound but holds no measured request, so there is nothing to report."""


def unwritable(path: Path, error: OSError) -> BundleError:
    """Return the error for a part of a report that cannot be written."""
    from wanlat.topologies.errors import way_out_of_machine

    way_out = way_out_of_machine(error) or (
        "Make its directory writable, or copy the bundle to where you may write."
    )
    return BundleError(f"{path} cannot be written: {error.strerror or error}. {way_out}")


@contextmanager
def refusing(directory: Path) -> Iterator[None]:
    """Turn whatever reading a bundle runs into unforeseen into a BundleError.

    Files are checked as they are read, but not every value in them: that of a claim, for example.
    What the machine or the installation lacks is passed on: no bundle is behind that.
    """
    try:
        yield
    except (BundleError, ImportError, MemoryError):
        raise
    except Exception as error:
        # Reading needs no other room.
        from wanlat.topologies.errors import WanlatError, way_out_of_machine
        from wanlat.topologies.unforeseen import summary

        may_not = isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM)
        if may_not or way_out_of_machine(error) or isinstance(error, WanlatError):
            raise
        raise BundleError(
            f"{directory} is damaged: its files are readable, but a value in one of them is not "
            f"what it should be ({summary(error)}). If nobody changed the bundle this is a mistake "
            "of wanlat's; report it with the manifest.json. Otherwise run the study again."
        ) from error
