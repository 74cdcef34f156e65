//! `oneshot` sends the requests of a plan one at a time and says where the time of each went.
//!
//! What is here, from the plan to the record of a request:
//!
//! - [`plan`] reads a plan line by line; [`body`] makes the bytes of an object from a seed, and
//!   [`lanes`] many of them at a time.
//! - [`protocol`] says what a protocol is, and carries out a plan with any. [`s3`] is one, with
//!   [`http`] as its timed part: one request, one response. [`grpc`] is another, for Bob's API and
//!   any service by its .proto files; its timed part is in [`grpc::call`]. [`http::template`] and
//!   [`exec`] send what [`placeholders`] make of a user's templates: over HTTP, and by a program.
//! - [`protocols`] lists them.
//! - A large body is never held: [`outgoing`] makes it while it is sent, [`verify`] compares it while
//!   it comes.
//! - They wait on a [`connection`], with the instants of [`timing`] on [`clock`].
//! - [`tcp_info`], [`failure`] and [`outcome`] judge it once the clock has stopped; [`record`] is the
//!   line that comes out.
//! - [`load`] keeps many requests in flight, each sent as a plan's.

pub mod body;
pub mod clock;
pub mod connection;
pub mod exec;
pub mod failure;
pub mod grpc;
pub mod http;
pub mod lanes;
pub mod load;
pub mod outcome;
pub mod outgoing;
pub mod placeholders;
pub mod plan;
pub mod protocol;
pub mod protocols;
pub mod record;
pub mod s3;
pub mod target;
pub mod tcp_info;
pub mod timing;
pub mod verify;
