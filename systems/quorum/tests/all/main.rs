//! The tests of the store from outside, in one program: it is linked once.
//!
//! They run beside each other, each on clusters of its own. A test fails for what the store does,
//! not for what the machine does: it asserts rounds, outcomes, bytes, that nothing is quicker than
//! the network allows, and of slowness what a stall of seconds or a busy processor leaves as it is.

mod common;

mod api;
mod availability;
mod bob;
mod bob_availability;
mod bob_rounds;
mod defects;
mod disturbances;
mod durability;
mod rounds;
