//! What ended a request before its response was complete, and how far it had come.

use std::fmt;

use rustix::io::Errno;

/// How far a request had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Connect,
    Send,
    FirstByte,
    Body,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Connect => "connect",
            Stage::Send => "send",
            Stage::FirstByte => "first byte",
            Stage::Body => "body",
        })
    }
}

/// What ended it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    Timeout,
    Refused,
    Reset,
    Closed,
    Malformed(String),
    Os(Errno),
}

/// A request that got no complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub stage: Stage,
    pub cause: Cause,
}

impl From<Errno> for Cause {
    fn from(error: Errno) -> Self {
        match error {
            // The kernel gives up on a SYN or on unacknowledged data with the same error.
            Errno::TIMEDOUT => Cause::Timeout,
            Errno::CONNREFUSED => Cause::Refused,
            Errno::CONNRESET | Errno::PIPE => Cause::Reset,
            other => Cause::Os(other),
        }
    }
}

impl Failure {
    pub fn from_errno(stage: Stage, error: Errno) -> Self {
        let cause = error.into();
        Failure { stage, cause }
    }
}
