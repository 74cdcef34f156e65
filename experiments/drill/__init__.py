"""Drills: a real cluster, something broken at a known instant, and what its users saw of it."""
