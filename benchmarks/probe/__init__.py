"""What the probe itself costs: oneshot beside bare loops and the usual clients."""
