"""What the command `wanlat` starts with: Ctrl-C is answered from the first moment on.

While the command line's own modules are imported, Python would print a traceback of whatever it
was importing.
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
        from wanlat import cli

        cli.main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
