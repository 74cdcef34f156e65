"""What the command `wanlat` starts with: Ctrl-C is answered from the first moment on.

The command line's own modules take half a second to be imported, in which Python would print a
traceback of whatever it was importing.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Import the command line and run it; exit codes as of `wanlat.cli.main`."""
    try:
        from wanlat import cli
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    cli.main()
