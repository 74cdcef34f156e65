//! The system calls, and all of the crate's `unsafe`.
//!
//! Everything above this module is safe Rust. Most of what is in it is safe as well, since rustix
//! makes the calls; what rustix lacks goes through libc, and each `unsafe` block says why it holds.

#![allow(unsafe_code)]

mod epoll;
mod messages;
mod packet_socket;
mod process;

pub use epoll::{Epoll, Interest};
pub use messages::{BATCH, ReceiveBatch};
pub use packet_socket::PacketSocket;
pub use process::{descriptor_limit, ignore_file_size_signal, lower_priority, prepare_process};

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds of `CLOCK_REALTIME`, the clock of the kernel's receive timestamps.
pub fn realtime_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Realtime))
}

/// Waits until `fd` can be written, but no longer than `timeout_ns`. Returns whether it can.
pub fn wait_writable(fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
    let mut descriptors = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    poll(&mut descriptors, Some(&to_timespec(timeout_ns))) == Ok(1)
}

/// A timespec as nanoseconds; what lies before the epoch counts as the epoch.
fn to_ns(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

/// Nanoseconds as a timespec.
fn to_timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000).cast_signed(),
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}
