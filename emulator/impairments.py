"""What the links of a running lab do to packets, and changing it in place."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from wanlat.emulator.backends import Counters
from wanlat.emulator.changes import Change, Settings, fitting, mistakes
from wanlat.emulator.journal import Entry, Journal
from wanlat.emulator.links import Direction, requested
from wanlat.emulator.targets import Target, Targets
from wanlat.topologies.errors import UserError, WanlatError
from wanlat.topologies.resolve import Impairment, Plan
from wanlat.topologies.wording import listing

_BY_HAND = "by hand"  # the holder of cuts that are `heal`ed or cut again without a lease

What = Impairment | Settings
"""What a direction gets: an impairment in place of its own, or some settings on top of it."""

_Steps = Mapping[Direction, Callable[["Stack"], "Stack"]]


class _Step(NamedTuple):
    changes: Sequence[Change]
    holder: Hashable | None  # None: it stays

    def on(self, before: Impairment) -> Impairment:
        for change in self.changes:
            before = change.on(before)
        return before


@dataclass(frozen=True)
class Stack:
    """What is in force on one direction, as the sum of what was requested.

    At the bottom is what the topology has. On it lie changes that stay and changes that somebody
    holds for a while (a drill's fault, ``--for 30s``), in the order in which they were made. When a
    hold ends, what it did is gone and everything above and below it stays: two faults that overlap
    in time do not undo each other. A cut lies on top of all.

    Immutable: every method returns another.
    """

    base: Impairment
    steps: tuple[_Step, ...] = ()
    cutters: frozenset[Hashable] = frozenset()

    @property
    def top(self) -> Impairment:
        """What is in force."""
        result = self.base
        for step in self.steps:
            result = step.on(result)
        if self.cutters:
            result = replace(result, loss=1.0, bursts=None)
        return result

    @property
    def is_cut(self) -> bool:
        """Whether somebody cut it."""
        return bool(self.cutters)

    def settled(self, keeping: Hashable) -> Impairment:
        """What is in force once every hold has ended, and every cut but that of ``keeping``."""
        left = replace(
            self,
            steps=tuple(step for step in self.steps if step.holder is None),
            cutters=self.cutters & {keeping},
        )
        return fitting(left.top)

    def changed(self, changes: Sequence[Change], holder: Hashable | None = None) -> Stack:
        """Lay changes on it, which stay, or which ``holder`` takes away again."""
        return replace(self, steps=(*self.steps, _Step(changes, holder)))._folded()

    def cut(self, holder: Hashable) -> Stack:
        """Let nothing through until ``holder`` ends it, or everything is healed."""
        return replace(self, cutters=self.cutters | {holder})

    def without(self, holder: Hashable) -> Stack:
        """Take away what ``holder`` laid on it."""
        left = Stack(
            self.base,
            tuple(step for step in self.steps if step.holder != holder),
            self.cutters - {holder},
        )._folded()
        # Without that, what was changed later may request delays below zero.
        fitted = fitting(left.top)
        if fitted == left.top:
            return left
        return left.changed([Change({"jitter_ns": fitted.jitter_ns})])

    def _folded(self) -> Stack:
        """Make what stays, and lies on the base, the base."""
        base, steps = self.base, list(self.steps)
        while steps and steps[0].holder is None:
            base = steps.pop(0).on(base)
        return Stack(base, tuple(steps), self.cutters)

    def healed(self) -> Stack:
        """Take away every cut."""
        return replace(self, cutters=frozenset())


class Impairments:
    """The part of a lab that changes its links. Every method may be called from any thread.

    Packets that are on their way keep the instant at which they are due. All directions of one
    call change at one instant (``wire``) or one right after the other (``netem``). Every change
    returns its instant of effect, CLOCK_MONOTONIC in ns, and is in ``journal``.
    """

    def __init__(self, plan: Plan, journal: Path | None) -> None:
        self.plan = plan
        self.targets = Targets(plan)
        self._requested = requested(plan)
        self._in_force = dict(self._requested)
        self._stacks = {direction: Stack(value) for direction, value in self._requested.items()}
        self._unsure: set[Direction] = set()
        self._changing = threading.RLock()  # a listener of the journal may look
        self.journal = Journal(self._requested, journal)

    @property
    def fate(self) -> str:
        """Return how the lab ended; empty while it lives."""
        raise NotImplementedError

    def _call(
        self, operation: str, *arguments: Any, fds: tuple[int, ...] = ()
    ) -> tuple[Any, list[int]]:
        """Have the lab's supervisor do something."""
        raise NotImplementedError

    @property
    def impairments(self) -> dict[Direction, Impairment]:
        """Return what is in force on every direction of every link."""
        with self._changing:
            return dict(self._in_force)

    @property
    def requested(self) -> dict[Direction, Impairment]:
        """Return what the topology requests of every direction."""
        return dict(self._requested)

    @property
    def settled(self) -> dict[Direction, Impairment]:
        """Return what every direction is to be once every hold on it has ended."""
        with self._changing:
            return {direction: stack.settled(_BY_HAND) for direction, stack in self._stacks.items()}

    @property
    def cut_off(self) -> frozenset[Direction]:
        """Return the directions that are cut."""
        with self._changing:
            return frozenset(direction for direction, stack in self._stacks.items() if stack.is_cut)

    def change(
        self,
        target: Target | Mapping[Any, What],
        to: Impairment | None = None,
        /,
        *,
        origin: str = "api",
        **settings: Any,
    ) -> int:
        """Change links, until something else is requested.

        ``lab.change("dc1/dc2", delay="200ms", loss="5%")`` changes that and leaves the rest;
        ``lab.change("dc1:dc2", Impairment(...))`` replaces all of it. A mapping from targets to
        either changes several, at one instant. Targets are named as in `wanlat.emulator.targets`,
        settings as in `wanlat.emulator.changes`.

        Raises UserError for what is not there or does not fit together, MachineError for what
        the backend cannot do; nothing has changed then.
        """
        changes = self._changes(target, to, settings)
        steps = {
            direction: partial(Stack.changed, changes=all_) for direction, all_ in changes.items()
        }
        return self._apply(steps, origin, _in_part(changes))

    def changed(
        self,
        target: Target | Mapping[Any, What],
        to: Impairment | None = None,
        /,
        *,
        origin: str = "api",
        **settings: Any,
    ) -> Lease:
        """Return a change that lasts for a ``with`` block, or from its ``begin`` to its ``end``.

        When it ends, what it did is taken away, and what others did in the meantime stays.
        """
        changes = self._changes(target, to, settings)
        steps = {
            direction: partial(Stack.changed, changes=all_) for direction, all_ in changes.items()
        }
        return Lease(self, steps, origin, _in_part(changes))

    def check_changes(self, target: Target, *several: Settings) -> None:
        """Raise UserError where one of several changes would be refused; nothing changes."""
        with self._changing:
            for settings in several:
                for direction, changes in self._changes(target, None, settings).items():
                    if wrong := mistakes(self._stacks[direction].changed(changes).top):
                        text = f"The link {direction} cannot be changed so: {listing(wrong)}."
                        raise UserError(text)

    def cut(self, target: Target, *, origin: str = "api") -> int:
        """Let nothing through, whatever else is requested, until it is healed."""
        directions = self.targets.directions(target)
        return self._apply(dict.fromkeys(directions, partial(Stack.cut, holder=_BY_HAND)), origin)

    def cutting(self, target: Target, *, origin: str = "api") -> Lease:
        """Return a cut that lasts for a ``with`` block, or from its ``begin`` to its ``end``."""
        return Lease(self, dict.fromkeys(self.targets.directions(target), Stack.cut), origin)

    def heal(self, target: Target = "all", *, origin: str = "api") -> int:
        """End every cut; whatever else was changed stays."""
        return self._apply(dict.fromkeys(self.targets.directions(target), Stack.healed), origin)

    def restore(self, target: Target = "all", *, origin: str = "api") -> int:
        """Return to what the topology has; cuts and changes that are held end as well."""
        directions = self.targets.directions(target)
        steps = {
            direction: partial(_instead, Stack(self._requested[direction]))
            for direction in directions
        }
        return self._apply(steps, origin)

    def counters(self) -> dict[Direction, Counters]:
        """Return the backend's counters of every impaired direction."""
        value: dict[Direction, Counters] = self._call("counters")[0]
        return value

    def _changes(
        self, target: Target | Mapping[Any, What], to: Impairment | None, settings: Settings
    ) -> dict[Direction, list[Change]]:
        if isinstance(target, Mapping):
            if to is not None or settings:
                raise UserError("A mapping has what each target gets; give nothing else.")
            if not target:
                raise UserError("Nothing is to be changed: the mapping is empty.")
            given = list(target.items())
        elif to is not None and settings:
            raise UserError("Give an impairment to replace all, or settings to change some.")
        else:
            given = [(target, settings if to is None else to)]
        changes: dict[Direction, list[Change]] = {}
        for named, what in given:
            directions = self.targets.directions(named)
            if isinstance(what, Impairment):
                change = Change.to(what)
            else:
                both_ways = {direction.opposite for direction in directions} <= set(directions)
                change = Change.parse(what, both_ways=both_ways)
            for direction in directions:
                changes.setdefault(direction, []).append(change)
        return changes

    def _apply(self, steps: _Steps, origin: str, checked: Collection[Direction] = ()) -> int:
        """Have stacks of directions take the place of what they are; return the instant.

        ``checked``: where what comes out is to be looked at as a topology file would be.
        """
        with self._changing:
            wanted = {direction: step(self._stacks[direction]) for direction, step in steps.items()}
            after = {direction: stack.top for direction, stack in wanted.items()}
            changes = {
                direction: value
                for direction, value in after.items()
                if value != self._in_force[direction] or direction in self._unsure
            }
            for direction in (direction for direction in changes if direction in checked):
                wrong = mistakes(changes[direction])
                if wrong:
                    raise UserError(f"The link {direction} cannot be changed so: {listing(wrong)}.")
            now = time.monotonic_ns()
            not_before, instant = self._change(changes) if changes else (now, now)
            entries = [
                Entry(instant, not_before, direction, self._in_force[direction], value, origin)
                for direction, value in changes.items()
            ]
            self._stacks.update(wanted)
            self._in_force.update(changes)
            self.journal.record(entries)
            return instant

    def _change(self, changes: dict[Direction, Impairment]) -> tuple[int, int]:
        """Return between which instants it took effect."""
        try:
            window: tuple[int, int] = self._call("change", changes)[0]
        except WanlatError:
            raise
        except BaseException:
            self._unsure.update(changes)  # interrupted: it may have happened or not
            raise
        self._unsure.difference_update(changes)
        return window


class Lease:
    """A change for as long as its lease lasts. A context manager; safe to end twice."""

    def __init__(
        self,
        lab: Impairments,
        steps: Mapping[Direction, Callable[..., Stack]],
        origin: str,
        checked: Collection[Direction] = (),
    ) -> None:
        """``steps`` are called with the stack and, as ``holder``, the lease."""
        self.started_ns: int | None = None
        self.ended_ns: int | None = None
        self._lab = lab
        self._steps = {direction: partial(step, holder=self) for direction, step in steps.items()}
        self._origin = origin
        self._checked = checked

    def begin(self) -> int:
        """Let it take effect; return the instant. It begins once."""
        if self.started_ns is not None:
            raise UserError("This change has started before; make another one.")
        try:
            self.started_ns = self._lab._apply(self._steps, self._origin, self._checked)
        except BaseException:  # it may be in force: Ctrl-C, or a journal that cannot be written
            with contextlib.suppress(WanlatError):
                self._release()
            raise
        return self.started_ns

    def end(self) -> int:
        """Take it away; return the instant at which that was in force."""
        if self.ended_ns is None:
            self.ended_ns = self._release()
        return self.ended_ns

    def _release(self) -> int:
        without = partial(Stack.without, holder=self)
        return self._lab._apply(dict.fromkeys(self._steps, without), self._origin)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.end()
        except WanlatError:
            if error is None or not self._lab.fate:  # the end of the lab is reported already
                raise


def _instead(stack: Stack, _: Stack) -> Stack:
    return stack


def _in_part(changes: Mapping[Direction, Sequence[Change]]) -> set[Direction]:
    """Return where only a part is changed: what is given whole is its giver's, as in a plan."""
    return {
        direction
        for direction, all_ in changes.items()
        if not any(change.is_whole for change in all_)
    }
