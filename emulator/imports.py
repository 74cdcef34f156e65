"""An end to imports, for a process that goes on where others may have changed its modules' files.

The supervisor of a lab lives in the lab's mounts, and the lab's programs may mount what they like
over its packages. So it imports all that it may ever need before there is any program.
"""

from __future__ import annotations

import sys


class _Refusing:
    def find_spec(self, name: str, *_: object) -> None:
        raise ImportError(f"{name} was not imported before programs could replace it", name=name)


def forbid() -> None:
    """Have no further module be imported by this process, from nowhere. It cannot be undone."""
    sys.meta_path[:] = [_Refusing()]
    sys.path.clear()
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()
