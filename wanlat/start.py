"""What the command `wanlat` starts and ends with: its streams, and Ctrl-C at any moment.

While the command line's own modules are imported, and while the interpreter ends, Python would
print a traceback of whatever it was doing. Here, and in what is imported before, is no import of a
module that Python has not loaded by itself: `python -m wanlat` would take it from the current
directory.
"""

import gc
import os
import sys


def main() -> None:
    """Import the command line and run it; exit codes as of `wanlat.cli.main`."""
    _leave_out_current_directory()
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


def _leave_out_current_directory() -> None:
    """Import nothing from where the user stands, unless PYTHONPATH names it; start nothing either.

    An empty entry of PYTHONPATH or PATH, mostly an accident, would be the current directory. It
    stays the last place to look where wanlat itself lies there.
    """
    try:
        here = os.getcwd()  # noqa: PTH109 - pathlib is not loaded yet
    except OSError:  # it was removed
        return
    named = [os.path.join(here, entry) for entry in _entries("PYTHONPATH")]  # noqa: PTH118
    if named:
        os.environ["PYTHONPATH"] = os.pathsep.join(named)
    else:
        os.environ.pop("PYTHONPATH", None)
    # Without an entry it would be the current directory again; so it is without PATH for some.
    os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, _entries("PATH"))) or os.defpath
    if here in map(os.path.normpath, named):
        return
    # Installed packages come after Python's own modules; a user may well stand among them.
    own = os.path.dirname(os.__file__)  # noqa: PTH120
    before = sys.path.index(own) if own in sys.path else len(sys.path)
    sys.path[:before] = [entry for entry in sys.path[:before] if entry not in ("", here)]
    package = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    if os.path.dirname(package) == here and here not in sys.path:  # noqa: PTH120
        sys.path.append(here)


def _entries(name: str) -> list[str]:
    return [entry for entry in os.environ.get(name, "").split(os.pathsep) if entry]
