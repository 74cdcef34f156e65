#!/usr/bin/env bash
# Importing distributed (Dask) changes how every exception of the process is pickled, also on
# channels that Dask has no part in.
#
# 28 November 2026. Versions: distributed 2026.8.0, tblib 3.2.2 (its dependency), Python 3.11.
#
# Guess:   an exception is pickled as its class and its arguments; Dask's own way of carrying
#          tracebacks is in what Dask sends.
# Happens: `import distributed` registers reducers of tblib for all exceptions, in the table that
#          every pickler of the process shares (copyreg). ValueError("x") is three times as long, and
#          an interpreter without tblib, at the other end of a pipe or a queue, cannot read it.
#
# Output seen:
#   before   46 bytes, read without tblib: ValueError('x')
#   after    138 bytes, read without tblib: ModuleNotFoundError
set -euo pipefail
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
python3 -m venv "$here/venv"
python3 -m venv "$here/plain"
"$here/venv/bin/pip" install --quiet --disable-pip-version-check distributed==2026.8.0 dask==2026.8.0 tblib==3.2.2
cat >"$here/seen.py" <<'PYTHON'
import pickle
import subprocess
import sys

READ = (
    "import pickle, sys\n"
    "try: print(repr(pickle.load(sys.stdin.buffer)))\n"
    "except ImportError as error: print(type(error).__name__)\n"
)


def seen() -> tuple[int, str]:
    sent = pickle.dumps(ValueError("x"))
    read = subprocess.run([sys.argv[1], "-c", READ], input=sent, capture_output=True, check=True)
    return len(sent), read.stdout.decode().strip()


before = seen()
import distributed  # noqa: E402

after = seen()
for name, (length, answer) in (("before", before), ("after", after)):
    print(f"{name:8} {length} bytes, read without tblib: {answer}")
assert distributed.__version__ == "2026.8.0"
sys.exit((before[1], after[1]) != ("ValueError('x')", "ModuleNotFoundError") or after[0] < 2 * before[0])
PYTHON
"$here/venv/bin/python" "$here/seen.py" "$here/plain/bin/python"
