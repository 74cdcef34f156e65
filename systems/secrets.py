"""Secrets of a cluster that exists only inside a lab.

They protect nothing: nobody outside can reach the network, and all of it is gone afterwards.
They are derived and not drawn, so that two runs of one study configure the same cluster.
"""

from __future__ import annotations

import hashlib


def derive(purpose: str, digits: int = 64) -> str:
    """Return up to 64 hex digits that depend on the purpose alone."""
    return hashlib.sha256(f"wanlat: {purpose}".encode()).hexdigest()[:digits]
