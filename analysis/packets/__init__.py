"""A run's requests by its packet record: critical paths, and what they cost.

Independent of the regression in `analysis.stats.round_trips`: nothing here looks at how latency
grows.
"""
