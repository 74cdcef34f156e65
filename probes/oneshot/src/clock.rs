//! The one clock: CLOCK_MONOTONIC, in nanoseconds, which all processes of a machine share. And the
//! date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds since an arbitrary instant (the machine's start). Read without a system call.
pub fn now_ns() -> u64 {
    ns_of(ClockId::Monotonic)
}

/// CPU time of the calling thread since it began, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    ns_of(ClockId::ThreadCPUTime)
}

fn ns_of(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    // These clocks start at zero, so neither part is ever negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A time to wait, as the kernel takes it.
pub fn timespec(ns: u64) -> Timespec {
    let timespec = Timespec::try_from(Duration::from_nanos(ns));
    timespec.expect("584 years are no more than it holds")
}

/// Seconds since 1970.
pub fn unix_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
