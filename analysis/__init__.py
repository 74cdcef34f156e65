"""A bundle in; statistics, tables, charts and a report out.

The room reads what a run left on disk and nothing else: it imports no other room, starts nothing
and never changes a sample. `wanlat.analysis.report.report` is the way in.
"""
