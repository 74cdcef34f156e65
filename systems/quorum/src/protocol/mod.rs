//! How requests travel between nodes before they are answered.
//!
//! A protocol is one file here. Its number of sequential round trips is what the store exists for:
//! the table is in the README, `tests/rounds.rs` holds it to that.

mod forget;
mod leader;
mod leaderless;
mod missed;
mod mixture;
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
use self::mixture::{Mixture, Shares};
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
    Mixture(Shares),
}

impl Choice {
    /// `leader` matters to [`Choice::Leader`] only.
    pub fn build(self, members: Members, leader: NodeId) -> Arc<dyn Protocol> {
        match self {
            Self::Leaderless => Arc::new(leaderless::Leaderless { members }),
            Self::Leader => Arc::new(leader::Leader { members, leader }),
            Self::Rounds(count) => Arc::new(rounds::Sequential { members, count }),
            Self::Mixture(shares) => Arc::new(Mixture::new(members, shares)),
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = |count: &str| count.parse().ok().filter(|count| (1..=16).contains(count));
        let words: Vec<_> = text.split(':').collect();
        let choice = match words[..] {
            ["leaderless"] => Some(Self::Leaderless),
            ["leader"] => Some(Self::Leader),
            ["rounds", k] => count(k).map(Self::Rounds),
            ["mixture", percent, j, k] => {
                let percent = percent
                    .parse()
                    .ok()
                    .filter(|share| (1..100).contains(share));
                shares(percent, count(j), count(k)).map(Self::Mixture)
            }
            _ => None,
        };
        choice.ok_or_else(|| {
            "allowed are leaderless, leader, rounds:1 to rounds:16, and mixture:PERCENT:J:K, where \
             PERCENT of 100 requests cost J rounds, the others K"
                .into()
        })
    }
}

fn shares(percent: Option<u32>, rounds: Option<u32>, otherwise: Option<u32>) -> Option<Shares> {
    Some(Shares {
        percent: percent?,
        rounds: rounds?,
        otherwise: otherwise?,
    })
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaderless => write!(f, "leaderless"),
            Self::Leader => write!(f, "leader"),
            Self::Rounds(count) => write!(f, "rounds:{count}"),
            Self::Mixture(Shares {
                percent,
                rounds,
                otherwise,
            }) => write!(f, "mixture:{percent}:{rounds}:{otherwise}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_prints_as_it_is_written() {
        for text in ["leaderless", "leader", "rounds:3", "mixture:30:1:3"] {
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
            "mixture:30",
            "mixture:0:1:3",
            "mixture:100:1:3",
            "mixture:30:1:17",
        ] {
            let error = text.parse::<Choice>().unwrap_err();
            assert!(error.contains("rounds:1 to rounds:16"), "{text}");
        }
    }
}
