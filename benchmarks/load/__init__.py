"""How accurate delays are while other processes compute: ``python -m benchmarks.load``."""
