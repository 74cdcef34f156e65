"""Topologies for other tools: each target is a module with one function from a plan to files."""
