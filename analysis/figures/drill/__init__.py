"""What came of a drill: availability, outages, recovery, durability, and many drills side by side.

Nothing here renders; docs/statistics.md defines every figure.
"""
