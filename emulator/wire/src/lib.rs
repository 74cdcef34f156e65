//! `wire`: the links of an emulated network, in user space.
//!
//! One single-threaded event loop moves Ethernet frames between pairs of interfaces and makes
//! them as late, as lossy and as slow as asked. `README.md` beside `Cargo.toml` tells how and why.
//!
//! All times are nanoseconds of `CLOCK_MONOTONIC` unless a name says otherwise.

#![deny(unsafe_code)]
#![warn(missing_docs)]
#![warn(clippy::undocumented_unsafe_blocks)]

pub mod arrival;
pub mod buffers;
pub mod capture;
pub mod console;
pub mod control;
pub mod direction;
pub mod draws;
pub mod due_queue;
pub mod engine;
pub mod event_loop;
pub mod flow_order;
pub mod frame;
pub mod history;
pub mod impairment;
pub mod lateness;
pub mod rate;
pub mod shape;
pub mod stats;
pub mod sys;
pub mod waiter;
pub mod way;
