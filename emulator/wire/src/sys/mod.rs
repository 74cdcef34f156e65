//! The system calls, and all of the crate's `unsafe`.
//!
//! Everything above this module is safe Rust. Most of what is in it is safe as well, since rustix
//! makes the calls; what rustix lacks goes through libc, and each `unsafe` block says why it holds.

#![allow(unsafe_code)]

mod epoll;
mod messages;
mod packet_socket;
mod process;
mod time;

pub use epoll::{Epoll, Interest};
pub use messages::{BATCH, ReceiveBatch};
pub use packet_socket::PacketSocket;
pub use process::{descriptor_limit, ignore_file_size_signal, lower_priority, prepare_process};
pub use time::{monotonic_ns, realtime_ns};

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use time::to_timespec;

/// Waits until `fd` can be written, but no longer than `timeout_ns`. Returns whether it can.
pub fn wait_writable(fd: BorrowedFd<'_>, timeout_ns: u64) -> bool {
    let mut descriptors = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    poll(&mut descriptors, Some(&to_timespec(timeout_ns))) == Ok(1)
}
