//! What the process asks of the scheduler and of its limits. All of it is optional: where the
//! machine refuses, `wire` works with what it has.

use std::os::fd::{AsRawFd, BorrowedFd};

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
    // SAFETY: PR_SET_TIMERSLACK takes plain integers. The default slack of 50 µs would be
    // added to every sleep.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
    shorten_slice();
    raise_descriptor_limit();
}

fn shorten_slice() {
    // SAFETY: getpriority takes plain integers; the caller's own nice value is kept.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime: SLICE_NS,
        deadline: 0,
        period: 0,
    };
    // SAFETY: `attributes` has the layout of the kernel's struct and states its own size. A
    // refusal changes nothing and is no error to us.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0) };
}

/// Every link needs two sockets.
fn raise_descriptor_limit() {
    let Some(mut limit) = read_descriptor_limit() else {
        return;
    };
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is a valid rlimit; raising the soft limit to the hard one is always
    // allowed.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
}

/// How many descriptors this process may have.
pub fn descriptor_limit() -> u64 {
    read_descriptor_limit().map_or(0, |limit| limit.rlim_cur)
}

fn read_descriptor_limit() -> Option<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is writable.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (result == 0).then_some(limit)
}

/// Waits until `fd` can be written, but no longer than `timeout_ns`. Returns whether it can.
pub fn wait_writable(fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
    let timeout = super::clock::to_timespec(timeout_ns);
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one valid pollfd, a timeout that outlives the call, no signal mask.
    unsafe { libc::ppoll(&mut poll, 1, &timeout, std::ptr::null()) == 1 }
}

/// Waits until `fd` can be read, but no longer than `timeout_ns`. Returns whether it can.
pub fn wait_readable(fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
    let timeout = super::clock::to_timespec(timeout_ns);
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid pollfd, a timeout that outlives the call, no signal mask.
    unsafe { libc::ppoll(&mut poll, 1, &timeout, std::ptr::null()) == 1 }
}

/// Lets a write beyond the limit on file sizes fail (`EFBIG`) instead of ending the process.
pub fn ignore_file_size_signal() {
    // SAFETY: SIG_IGN is no handler, so nothing runs.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Makes the calling thread nicer by so much.
pub fn lower_priority(nice: i32) {
    // SAFETY: plain integers; on Linux, 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}
