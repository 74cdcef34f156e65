//! How requests travel between nodes before they are answered.
//!
//! A protocol is one file here. Its number of sequential round trips is what the store exists for:
//! the table is in the README, `tests/rounds.rs` holds it to that.

mod forget;
mod leader;
mod leaderless;
mod missed;
mod objects;
mod operate;
mod placed;
mod round;
mod rounds;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

pub use self::forget::forget_when_healed;
pub use self::objects::record_of;
pub use self::operate::{bucket_of, pages_of};
pub use self::placed::{BUCKET, BUCKET_STATE, Placed};
pub use self::round::{Answered, Members, Patience, PeerRequest, Quorum, Round, encode};
use crate::clock::NodeId;
use crate::op::{Failure, Op, Response, Rounds};

#[async_trait]
pub trait Protocol: Send + Sync {
    /// Carries out an operation that a client asked this node for, and counts its rounds.
    async fn run(&self, op: Op, body: Bytes, rounds: &Rounds) -> Result<Response, Failure>;

    /// Carries out an operation that another node passed on.
    async fn run_forwarded(
        &self,
        op: Op,
        body: Bytes,
        rounds: &Rounds,
    ) -> Result<Response, Failure> {
        self.run(op, body, rounds).await
    }
}

/// `--protocol`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Leaderless,
    Leader,
    Rounds(u32),
}

impl Choice {
    /// `leader` matters to [`Choice::Leader`] only.
    pub fn build(self, members: Members, leader: NodeId) -> Arc<dyn Protocol> {
        match self {
            Self::Leaderless => Arc::new(leaderless::Leaderless { members }),
            Self::Leader => Arc::new(leader::Leader { members, leader }),
            Self::Rounds(count) => Arc::new(rounds::Sequential { members, count }),
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = |count: &str| count.parse().ok().filter(|count| (1..=16).contains(count));
        match text.split_once(':') {
            None if text == "leaderless" => Ok(Self::Leaderless),
            None if text == "leader" => Ok(Self::Leader),
            Some(("rounds", k)) if count(k).is_some() => {
                Ok(Self::Rounds(count(k).expect("just looked")))
            }
            _ => Err("allowed are leaderless, leader, and rounds:1 to rounds:16".into()),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaderless => write!(f, "leaderless"),
            Self::Leader => write!(f, "leader"),
            Self::Rounds(count) => write!(f, "rounds:{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_prints_as_it_is_written() {
        for text in ["leaderless", "leader", "rounds:3"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_not_a_protocol_is_told_what_is() {
        for text in [
            "",
            "raft",
            "rounds",
            "rounds:0",
            "rounds:17",
            "rounds:x",
            "leader:1",
        ] {
            let error = text.parse::<Choice>().unwrap_err();
            assert!(error.contains("rounds:1 to rounds:16"), "{text}");
        }
    }
}
