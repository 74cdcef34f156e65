//! What the generator itself takes.

use std::fs;
use std::mem;

use crate::clock;

/// Of one thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfThread {
    pub cpu_ns: u64,
    /// How long it could have run and had to wait for a core; None where the kernel does not count.
    pub waited_ns: Option<u64>,
}

/// Of the calling thread, since it began.
pub fn of_thread() -> OfThread {
    OfThread {
        cpu_ns: clock::thread_cpu_ns(),
        waited_ns: fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| text.split_whitespace().nth(1)?.parse().ok()),
    }
}

/// Of the whole process: user and system time, as getrusage has them.
pub fn of_process() -> (u64, u64) {
    // SAFETY: plain integers all, which the kernel writes.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is a rusage.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// How many cores the process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}
