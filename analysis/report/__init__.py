"""What a bundle's report consists of: sections, tables, summary.json, charts."""

from wanlat.analysis.report.write import Report, report

__all__ = ["Report", "report"]
