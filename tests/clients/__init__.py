"""Clients that wanlat has not written, timed as their users would time them."""
