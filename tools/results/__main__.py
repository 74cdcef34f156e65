"""Everything that docs/results shows, made again: `make results`, `make pages`.

    python -m tools.results measure [BUNDLE...]    what docs/results/results.yaml lists and nobody
                                                   has measured yet; what was begun goes on
    python -m tools.results report [BUNDLE...]     tables and charts of what is published, then what
                                                   is made of all of it: index and publications
    python -m tools.results pages                  each page of a *.md.j2, from its bundles

A bundle is measured below results/, and put below docs/results when it is complete: without logs,
captures and resource usage, which are large and can be had again. A page is a template: what stands
in braces is taken from the bundles beside it, or from what a benchmark kept, so that no figure
on it is typed by hand.
"""

from __future__ import annotations

import sys

from tools.results import CHECKOUT, RESULTS
from tools.results.measure import measure, report, unshown_pictures
from tools.results.pages import pages


def main() -> int:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["measure", *names]:
            return measure(names)
        case ["report", *names]:
            return report(names)
        case ["pages"]:
            for page, text in pages():
                page.write_text(text, "utf-8")
                print(page.relative_to(CHECKOUT))
            for picture in unshown_pictures(RESULTS):  # a template may show one of several
                picture.unlink()
            return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
