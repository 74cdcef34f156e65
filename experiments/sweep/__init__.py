"""Sweeps: a study over a grid of its parameters, point by point."""
