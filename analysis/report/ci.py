"""What a CI makes of results: JUnit XML, and Bencher Metric Format.

Both from the documents that `--json` prints, so that they agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as Xml

from wanlat.analysis.claims import Verdict
from wanlat.analysis.endpoints import with_placement
from wanlat.bundle.documents import UNKNOWN
from wanlat.bundle.errors import BundleError

Document = Mapping[str, Any]
_OPEN = ("not decided", "not comparable")
"""Verdicts on an endpoint that pass nothing."""
_MEASURES = (
    ("endpoints", "latency", "median_ms", "median_ci95_ms", 1e6),
    ("round_trips", "round-trips", "round_trips", "ci95", 1.0),
    ("round_trips", "wan-bytes", "wan_bytes", "wan_bytes_ci95", 1.0),
)
"""Of Bencher: in which table a measure is, its key and that of its interval, and its unit."""
Case = tuple[str, str, str | None, str | None]
"""A test: of what, its name, why it failed (None: it did not), why it decided nothing."""


def junit(suites: Iterable[tuple[str, Sequence[Case]]]) -> str:
    """JUnit XML of named suites of cases."""
    root = Xml.Element("testsuites")
    for name, cases in suites:
        counts = {
            "tests": str(len(cases)),
            "failures": str(sum(failure is not None for _, _, failure, _ in cases)),
            "skipped": str(sum(undecided is not None for *_, undecided in cases)),
        }
        suite = Xml.SubElement(root, "testsuite", {"name": name, **counts})
        for subject, title, failure, undecided in cases:
            case = Xml.SubElement(suite, "testcase", {"classname": subject, "name": title})
            if failure is not None:
                Xml.SubElement(case, "failure", {"message": failure.split(". ")[0]}).text = failure
            elif undecided is not None:
                Xml.SubElement(case, "skipped", {"message": undecided})
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def cases_of_comparison(comparison: Document) -> list[Case]:
    """A case for each endpoint: it fails if it fails the gate."""
    return [
        (
            row["system"],
            _name(row),
            _why(row) if row["fails"] else None,
            str(row["verdict"]) if row["verdict"] in _OPEN and not row["fails"] else None,
        )
        for row in comparison["endpoints"]
    ]


def cases_of_report(report: Document) -> list[Case]:
    """Whether a drill passed, and each claim that a drill or a study has.

    Raises BundleError where there is nothing to judge.
    """
    drill = report.get("drill") or {}
    subject = drill.get("system") or report["bundle"]["study"]
    cases: list[Case] = []
    if drill:
        failure = "\n".join(drill["failures"]) if drill["failures"] else None
        cases.append((subject, drill["name"], failure, None))
    claims = drill.get("claims") or (report.get("claims") or {}).get("claims") or ()
    for claim in claims:
        evidence = f"{claim['verdict']}: {claim.get('evidence') or claim.get('bound')}"
        fails = claim["verdict"] == Verdict.DOES_NOT_HOLD
        is_open = not fails and claim["verdict"] != Verdict.HOLDS
        why = evidence if fails else None
        cases.append((subject, claim["claim"], why, evidence if is_open else None))
    if not cases:
        raise BundleError(
            "There is nothing to judge for JUnit XML: the bundle is neither a drill's nor of a "
            "study with claims. To judge a study compare it: wanlat compare OLD NEW --junit FILE."
        )
    return cases


def bencher(reports: Iterable[Document]) -> dict[str, dict[str, Any]]:
    """Bencher Metric Format: medians of latency (ns), round trips, and WAN bytes of each endpoint.

    Each with its 95 % interval as bounds. Of studies; a drill's are those before its faults.
    """
    metrics: dict[str, dict[str, Any]] = {}
    for report in reports:
        for table, measure, key, ci95_key, unit in _MEASURES:
            for row in report.get(table) or ():
                if (value := row[key]) is None:
                    continue
                metric = {"value": unit * value}
                if (ci95 := row.get(ci95_key)) is not None:
                    metric |= {"lower_value": unit * ci95[0], "upper_value": unit * ci95[1]}
                point = [f"{name}={value}" for name, value in (row.get("values") or {}).items()]
                name = " ".join([row["system"], _name(row), *point])
                metrics.setdefault(name, {})[measure] = metric
    return metrics


def _name(row: Document) -> str:
    return with_placement(row["endpoint"], row.get("placement", UNKNOWN))


def _why(endpoint: Document) -> str:
    failing = [change["sentence"] for change in endpoint["changes"] if change["fails"]]
    return "; ".join(failing) or "gone: OLD measured it and NEW did not"
