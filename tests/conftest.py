"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes is the machine's matter: a stall of it is no failure.
settings.register_profile("wanlat", deadline=None)
settings.load_profile("wanlat")
