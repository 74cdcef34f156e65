//! `wire`: the links of an emulated network, in user space.
//!
//! One single-threaded event loop moves Ethernet frames between pairs of interfaces and makes
//! them as late, as lossy and as slow as asked. `README.md` beside `Cargo.toml` tells how and why.
//!
//! All times are nanoseconds of `CLOCK_MONOTONIC` unless a name says otherwise.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod arrival;
pub mod buffers;
pub mod capture;
pub mod checksum;
pub mod console;
pub mod control;
pub mod corruption;
pub mod direction;
pub mod draws;
pub mod due_queue;
pub mod engine;
mod engine_capture;
pub mod event_loop;
pub mod flow_order;
pub mod frame;
pub mod history;
pub mod impairment;
pub mod rate;
pub mod segments;
pub mod shape;
pub mod stats;
pub mod sys;
pub mod waiter;
