//! Any node coordinates: it asks all at once and answers when a majority has, one round for reads
//! and one for writes. Any two majorities share a node, so a read meets the last acknowledged write.

use async_trait::async_trait;
use bytes::Bytes;

use super::operate::{Operation, Reach};
use super::{Members, Protocol, Quorum};
use crate::op::{Failure, Op, Response, Rounds};

pub const REACH: Reach = Reach {
    reads: Quorum::Majority,
    writes: Quorum::Majority,
};

pub struct Leaderless {
    pub members: Members,
}

#[async_trait]
impl Protocol for Leaderless {
    async fn run(&self, op: Op, body: Bytes, rounds: &Rounds) -> Result<Response, Failure> {
        let operation = Operation {
            members: &self.members,
            reach: REACH,
            rounds,
        };
        operation.carry_out(op, body).await
    }
}
