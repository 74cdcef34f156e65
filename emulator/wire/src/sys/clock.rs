//! The two kernel clocks that matter here.

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of `CLOCK_REALTIME`, the clock of the kernel's receive timestamps.
pub fn realtime_ns() -> u64 {
    read_ns(libc::CLOCK_REALTIME)
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid, writable timespec. The call cannot fail for these two clocks.
    unsafe { libc::clock_gettime(clock, &mut time) };
    to_ns(&time)
}

/// A timespec as nanoseconds; what lies before the epoch counts as the epoch.
pub(super) fn to_ns(time: &libc::timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

/// Nanoseconds as a timespec.
pub(super) fn to_timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(ns / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}
