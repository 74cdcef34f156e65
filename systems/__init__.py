"""Stores under test: how the cluster of each is built, configured, started and made ready."""
