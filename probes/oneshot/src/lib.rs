//! `oneshot` sends the requests of a plan one at a time and says where the time of each went.
//!
//! What is here, from the plan to the record of a request:
//!
//! - [`plan`] reads a plan line by line; [`body`] makes the bytes of an object from a seed, and
//!   [`lanes`] many of them at a time.
//! - A large body is never held: [`outgoing`] makes it while it is sent, [`verify`] compares it while
//!   it comes.
//! - [`s3`] knows S3: what its endpoints are on the wire, how a request is signed, what a right
//!   answer holds. It builds the very bytes to send before any clock runs. [`http`] is its timed
//!   part: one request, one response.
//! - [`grpc`] knows Bob's API, and any other gRPC service by its .proto files; its timed part is in
//!   [`grpc::call`].
//! - Both wait on a [`connection`], with the instants of [`timing`] on [`clock`].
//! - [`tcp_info`], [`failure`] and [`outcome`] judge it once the clock has stopped; [`record`] is the
//!   line that comes out.
//!
//! Another protocol becomes a sibling of [`s3`] and [`grpc`], with plan lines of its own, and shares
//! the rest.

pub mod body;
pub mod clock;
pub mod connection;
pub mod failure;
pub mod grpc;
pub mod http;
pub mod lanes;
pub mod load;
pub mod outcome;
pub mod outgoing;
pub mod plan;
pub mod record;
pub mod s3;
pub mod target;
pub mod tcp_info;
pub mod timing;
pub mod verify;
