"""What the command `wanlat` starts and ends with: its streams, and Ctrl-C at any moment.

While the command line's own modules are imported, and while the interpreter ends, Python would
print a traceback of whatever it was doing.
"""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Import the command line and run it; exit codes as of `wanlat.cli.main`."""
    # Imports and charts make objects by the hundred thousand that stay: looking through them again
    # and again took a tenth of a report.
    gc.set_threshold(50_000)
    try:
        from wanlat import streams

        streams.secure()
        from wanlat import cli

        cli.main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
