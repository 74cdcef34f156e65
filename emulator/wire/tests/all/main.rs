//! The tests of `wire` from outside, in one program: it is linked once.
//!
//! Those that need a network build it in namespaces of their own, so that they need no root, leave
//! nothing behind, and run beside each other; where user namespaces are not allowed, they are
//! skipped and say so. Measured values are printed.
//!
//! A test fails for what `wire` does, not for what the machine does: it asserts counts, order,
//! that no frame is early (exactly), and of lateness what a stall of seconds or a busy processor
//! leaves as it is. How accurate and how fast `wire` is, `benchmarks/` measures.

mod effort;
mod frames;
mod lab;
mod program;
mod sandbox;
mod station;

mod accuracy;
mod capture;
mod control_protocol;
mod frame_parser;
mod fuzz;
mod impairments;
mod jitter;
mod lateness;
mod live_changes;
mod rate;
mod robustness;
mod size;
mod throughput;
