"""`python -m wanlat.topologies.export NAME`: the plan that `mininet.py` builds, on stdout.

The same as `wanlat topology export NAME --to mininet`, without loading the rest of wanlat.
"""

import sys

from wanlat.topologies.errors import WanlatError
from wanlat.topologies.export.mininet_plan import mininet_plan
from wanlat.topologies.load import load

if __name__ == "__main__":
    try:
        (_, name) = sys.argv
        (text,) = mininet_plan(load(name)).files.values()
    except WanlatError as error:
        sys.stderr.write(f"wanlat: {error}\n")
        sys.exit(error.exit_code)
    sys.stdout.write(text)
