"""How much a topology may hold, and why."""

from typing import Final

# Site i is 10.i.0.0/16: the second byte of an address, with room left for the lab's own networks.
MAX_SITES: Final = 200
# 254 nodes fill one third byte; 237 of those are used, and the router sits far above at .255.254.
MAX_NODES_PER_SITE: Final = 60_000
# More than a machine has room for; a plan of so many is still made in a second.
MAX_NODES: Final = 100_000
# Names become host names, parts of file names and labels of charts.
NAME_PATTERN: Final = "^[a-z0-9][a-z0-9-]{0,31}$"
# More than from Earth to Mars and back; a longer one is a wrong unit.
MAX_LINK_RTT_NS: Final = 3600 * 10**9
# One full Ethernet frame: a queue that holds less lets nothing of that size through.
MIN_QUEUE_BYTES: Final = 1514
# A day of pings, ten a second; more says nothing new about a shape of 4096 quantiles.
MAX_SAMPLES: Final = 1_000_000
# A larger one is a wrong file, and squares of such numbers still can be summed.
LARGEST_SAMPLE: Final = 1e15
