//! Real frames through real interfaces: what is asked of `wire` against what is measured.
//!
//! Every test builds its network in namespaces of its own, so that it needs no root and leaves
//! nothing behind; where user namespaces are not allowed, tests are skipped and say so. They run
//! one after the other: they measure time. Measured values are printed.

mod frames;
mod lab;
mod noise;
mod program;
mod sandbox;
mod station;

mod accuracy;
mod fuzz;
mod impairments;
mod jitter;
mod live_changes;
mod loss;
mod rate;
mod robustness;
mod size;
mod throughput;
mod under_load;
