//! What the process asks of the scheduler and of its limits. All of it is optional: where the
//! machine refuses, `wire` works with what it has.

use std::num::NonZeroU64;

use rustix::process::{
    Resource, Rlimit, getpriority_process, getrlimit, setpriority_process, setrlimit,
};
use rustix::thread::set_current_timer_slack;

/// The shortest slice that EEVDF takes. A thread with a short slice gets the CPU sooner after a
/// wake-up when others compete for it (Linux 6.12 and later; older kernels ignore it). It buys
/// latency, not a larger share of the CPU.
const SLICE_NS: u64 = 100_000;

/// `struct sched_attr` of linux/sched/types.h, first version.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Asks for exact timers, a short scheduler slice and as many descriptors as are allowed.
pub fn prepare_process() {
    // The default slack of 50 µs would be added to every sleep.
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
    shorten_slice();
    // Every link needs two sockets.
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
}

fn shorten_slice() {
    let attributes = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: getpriority_process(None).unwrap_or(0),
        priority: 0,
        runtime: SLICE_NS,
        deadline: 0,
        period: 0,
    };
    // SAFETY: `attributes` has the layout of the kernel's struct and states its own size. A
    // refusal changes nothing and is no error to us.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// How many descriptors this process may have.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Lets a write beyond the limit on file sizes fail (`EFBIG`) instead of ending the process.
pub fn ignore_file_size_signal() {
    // SAFETY: SIG_IGN is no handler, so nothing runs.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Makes the calling thread nicer by so much: on Linux, priorities are those of threads.
pub fn lower_priority(nice: i32) {
    let _ = setpriority_process(None, nice);
}
