//! How requests travel between nodes before they are answered. Their number of sequential round
//! trips is what the store exists for: the table is in the README, `tests/all/rounds.rs` holds it
//! to that.
//!
//! A protocol is data: which node coordinates, how many rounds that carry no work come first, and
//! whose answers the last round waits for.

mod objects;
mod operate;
mod operation;
mod placed;

use std::collections::HashMap;
use std::fmt;
use std::mem::{Discriminant, discriminant};
use std::sync::Mutex;
use std::time::Instant;

use bytes::Bytes;

use self::operation::Operation;
use crate::choice::Choice;
use crate::clock::NodeId;
use crate::op::{Effect, Failure, Op, Response, Rounds};
use crate::peers::{Message, PeerError};
use crate::round::{Members, Own, PeerRequest, encode, unavailable};

pub struct Protocol {
    members: Members,
    choice: Choice,
    leader: NodeId,
    /// How many requests of each kind this node coordinated.
    coordinated: Mutex<HashMap<Discriminant<Op>, u64>>,
}

impl Protocol {
    /// `leader` matters to [`Choice::Leader`] only.
    pub fn new(members: Members, choice: Choice, leader: NodeId) -> Self {
        Self {
            members,
            choice,
            leader,
            coordinated: Mutex::default(),
        }
    }

    /// Carries out an operation that a client asked this node for, and counts its rounds.
    pub async fn run(&self, op: Op, body: Bytes, rounds: &Rounds) -> Result<Response, Failure> {
        match self.choice == Choice::Leader && self.members.own != self.leader {
            true => self.forward(op, body, rounds).await,
            false => self.coordinate(op, body, rounds).await,
        }
    }

    /// Carries out an operation that a client or another node passed on to this one.
    pub async fn coordinate(
        &self,
        op: Op,
        body: Bytes,
        rounds: &Rounds,
    ) -> Result<Response, Failure> {
        let members = &self.members;
        let (reads, writes) = match self.choice {
            Choice::Leader => (members.alone(), members.majority(Own::Required)),
            _ => (members.majority(Own::AsAny), members.majority(Own::AsAny)),
        };
        let operation = Operation {
            members,
            reads,
            writes,
            rounds,
        };
        for _ in 1..self.rounds_of(&op) {
            operation.nothing().await?;
        }
        let began = Instant::now();
        let outcome = operation.carry_out(op, body).await;
        match members.defects.refuses(began.elapsed()) {
            true => Err(unavailable("refused as planted".into(), Effect::Unknown)),
            false => outcome,
        }
    }

    fn rounds_of(&self, op: &Op) -> u32 {
        let mut coordinated = self.coordinated.lock().expect("no holder panics");
        let number = coordinated.entry(discriminant(op)).or_default();
        *number += 1;
        self.choice.rounds(*number)
    }

    async fn forward(&self, op: Op, body: Bytes, rounds: &Rounds) -> Result<Response, Failure> {
        let peers = &self.members.peers;
        let effect_of_silence = match op.writes() {
            true => Effect::Unknown,
            false => Effect::None,
        };
        rounds.add(1);
        // Twice what the leader gives the others: its refusal must arrive.
        let limit = self.members.patience(&body) * 2;
        let head = encode(&PeerRequest::Forward(op));
        let message = Message { head, body };
        let answered = peers.request(self.leader, message, limit).await;
        let failed = |error: &dyn fmt::Display, effect| {
            let name = peers.name(self.leader);
            unavailable(format!("the leader, {name}: {error}"), effect)
        };
        let Message { head, body } = answered.map_err(|error| match error {
            PeerError::NotConnected => failed(&error, Effect::None),
            _ => failed(&error, effect_of_silence),
        })?;
        let (outcome, rounds_there): (Result<_, Failure>, _) =
            postcard::from_bytes(&head).map_err(|error| failed(&error, effect_of_silence))?;
        rounds.add(rounds_there);
        Ok((outcome?, body))
    }
}
