//! A fixed number of majority rounds, one after the other: all but the last carry no work, the last
//! is that of the leaderless protocol. A ruler for the instrument, and a stand-in for stores that
//! lock, read or vote before they write.

use async_trait::async_trait;
use bytes::Bytes;

use super::leaderless::REACH;
use super::operate::Operation;
use super::{Members, Protocol};
use crate::op::{Failure, Op, Response, Rounds};

pub struct Sequential {
    pub members: Members,
    pub count: u32,
}

#[async_trait]
impl Protocol for Sequential {
    async fn run(&self, op: Op, body: Bytes, rounds: &Rounds) -> Result<Response, Failure> {
        run_in(self.count, &self.members, op, body, rounds).await
    }
}

/// Carries out an operation in so many rounds; DeleteBucket takes one more.
pub async fn run_in(
    count: u32,
    members: &Members,
    op: Op,
    body: Bytes,
    rounds: &Rounds,
) -> Result<Response, Failure> {
    let operation = Operation {
        members,
        reach: REACH,
        rounds,
    };
    for _ in 1..count {
        operation.nothing().await?;
    }
    operation.carry_out(op, body).await
}
