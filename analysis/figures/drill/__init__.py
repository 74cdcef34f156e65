"""What came of a drill: availability, outages, recovery, durability, and many drills side by side.

Nothing here renders; docs/reference/statistics.md defines every figure.
"""
