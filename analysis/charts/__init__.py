"""The charts of a report, one file a chart; `style` is common to all of them.

Importing this package makes matplotlib safe to import where HOME cannot be written. matplotlib
itself is imported by the modules inside, so import those only when a chart is to be drawn.
"""

from wanlat.analysis.charts.home import give_matplotlib_a_home

give_matplotlib_a_home()
