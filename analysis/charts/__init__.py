"""The charts of a report, one file a chart; `style` is common to all of them.

Import the modules inside only when a chart is to be drawn: matplotlib takes a while. Where its
usual directories cannot be written (a container, a read-only file system) it takes a temporary one
of its own accord, and its warning about that is kept back.
"""

import logging

_LOG = logging.getLogger("matplotlib")
if _LOG.level == logging.NOTSET:
    _LOG.setLevel(logging.ERROR)
