//! The system calls, and all of the crate's `unsafe`.
//!
//! Everything above this module is safe Rust; everything in it offers a safe interface and says
//! at each `unsafe` block why it holds.

#![allow(unsafe_code)]

mod clock;
mod epoll;
mod messages;
mod packet_ring;
mod packet_socket;
mod process;

pub use clock::{monotonic_ns, realtime_ns};
pub use epoll::{Epoll, Interest};
pub use messages::{BATCH, ReceiveBatch};
pub use packet_ring::{Instruction, PacketRing, RingFrame};
pub use packet_socket::PacketSocket;
pub use process::{
    descriptor_limit, ignore_file_size_signal, lower_priority, prepare_process, wait_readable,
    wait_writable,
};

/// The result of a libc call that reports failure as -1 and leaves the reason in `errno`.
fn checked(result: libc::c_int) -> std::io::Result<libc::c_int> {
    if result < 0 {
        Err(std::io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
