//! The tests of the probe from outside, in one program: it is linked once.
//!
//! They run beside each other, each with servers of its own. A test fails for what the probe does,
//! not for what the machine does: it asserts what is sent and said, order, that a time contains
//! what was put into it, and of the rest what a stall of seconds or a busy processor leaves as it is.

mod common;

mod exec_programs;
mod grpc_methods;
mod grpc_on_the_wire;
mod grpc_outcomes;
mod grpc_timing;
mod grpc_windows;
mod http_templates;
mod large_bodies;
mod on_the_wire;
mod outcomes;
mod plan_lines;
mod response;
mod timing;
