"""The kinds of studies: a module for each."""

from __future__ import annotations

from collections.abc import Mapping

from wanlat.experiments.kinds.base import StudyKind
from wanlat.experiments.kinds.envelope import EnvelopeSpec
from wanlat.experiments.kinds.load import LoadSpec
from wanlat.experiments.kinds.reclaim import ReclaimSpec
from wanlat.experiments.kinds.round_trips import RoundTripsSpec

KINDS: Mapping[str, type[StudyKind]] = {
    kind.key: kind for kind in (RoundTripsSpec, LoadSpec, ReclaimSpec, EnvelopeSpec)
}
"""By the keys that make a study one of another kind; it has at most one."""
