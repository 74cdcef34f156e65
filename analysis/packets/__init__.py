"""What the packet record of a run says of its requests: critical paths, and what they cost.

Independent of the regression in `analysis.stats.round_trips`: nothing here looks at how latency
grows.
"""
