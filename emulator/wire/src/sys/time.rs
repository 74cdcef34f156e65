//! Clocks, and timespecs as nanoseconds.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds of `CLOCK_REALTIME`, the clock of the kernel's receive timestamps.
pub fn realtime_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Realtime))
}

/// A timespec as nanoseconds; what lies before the epoch counts as the epoch.
pub(super) fn to_ns(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

/// Nanoseconds as a timespec.
pub(super) fn to_timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}
