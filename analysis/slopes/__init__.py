"""The maths behind `wanlat.analysis.round_trips`: lines through latencies, on plain arrays.

`search` proposes lines, `mixture` weighs them against each other, `modes` decides how many there
are, `visits` reduces a mode to one latency a visit, `robust` draws the line through those,
`bootstrap` says how well it is known, `straightness` whether it is a line at all, and `shares`
how often each mode occurs.
"""
