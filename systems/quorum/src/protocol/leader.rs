//! One node, named at start-up, orders everything. The others pass every operation on to it (one
//! round trip); it replicates writes to a majority that it belongs to (one more) and answers reads
//! from its own disk (none). It is never replaced: without it nothing is served, which keeps the
//! number of round trips a matter of where a request enters and of nothing else.

use async_trait::async_trait;
use bytes::Bytes;

use super::operate::{Operation, Reach};
use super::round::{encode, unavailable};
use super::{Members, PeerRequest, Protocol, Quorum};
use crate::clock::NodeId;
use crate::op::{Effect, Failure, Op, Response, Rounds};
use crate::peers::{Message, PeerError};

const REACH: Reach = Reach {
    reads: Quorum::Own,
    writes: Quorum::MajorityWithOwn,
};

pub struct Leader {
    pub members: Members,
    pub leader: NodeId,
}

#[async_trait]
impl Protocol for Leader {
    async fn run(&self, op: Op, body: Bytes, rounds: &Rounds) -> Result<Response, Failure> {
        match self.members.own == self.leader {
            true => self.run_forwarded(op, body, rounds).await,
            false => self.forward(op, body, rounds).await,
        }
    }

    async fn run_forwarded(
        &self,
        op: Op,
        body: Bytes,
        rounds: &Rounds,
    ) -> Result<Response, Failure> {
        let operation = Operation {
            members: &self.members,
            reach: REACH,
            rounds,
        };
        operation.carry_out(op, body).await
    }
}

impl Leader {
    async fn forward(&self, op: Op, body: Bytes, rounds: &Rounds) -> Result<Response, Failure> {
        let Members {
            peers, patience, ..
        } = &self.members;
        let effect_of_silence = match op {
            Op::ListBuckets | Op::HeadBucket { .. } | Op::List { .. } | Op::Get { .. } => {
                Effect::None
            }
            _ => Effect::Unknown,
        };
        rounds.add(1);
        // Twice what the leader gives the others: its refusal must arrive.
        let limit = patience.with_body(&body) * 2;
        let head = encode(&PeerRequest::Forward(op));
        let answered = peers
            .request(self.leader, Message { head, body }, limit)
            .await;
        let failed = |error: &dyn std::fmt::Display, effect| {
            let name = peers.name(self.leader);
            unavailable(format!("the leader, {name}: {error}"), effect)
        };
        let Message { head, body } = answered.map_err(|error| match error {
            PeerError::NotConnected => failed(&error, Effect::None),
            _ => failed(&error, effect_of_silence),
        })?;
        let (outcome, rounds_there) =
            postcard::from_bytes(&head).map_err(|error| failed(&error, effect_of_silence))?;
        rounds.add(rounds_there);
        let outcome: Result<_, Failure> = outcome;
        Ok((outcome?, body))
    }
}
