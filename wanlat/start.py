"""What the command `wanlat` starts with: Ctrl-C is answered from the first moment on.

While the command line's own modules are imported, Python would print a traceback of whatever it
was importing.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Import the command line and run it; exit codes as of `wanlat.cli.main`."""
    try:
        from wanlat import cli

        cli.main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
