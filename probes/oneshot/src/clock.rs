//! The one clock: CLOCK_MONOTONIC, in nanoseconds, which all processes of a machine share.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since an arbitrary instant (the machine's start). Read without a system call.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // CLOCK_MONOTONIC starts at zero, so neither part is ever negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
