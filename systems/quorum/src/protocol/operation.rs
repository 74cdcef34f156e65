//! One operation under way, and the rounds that its protocol has.

use bytes::Bytes;

use crate::op::{Failure, Rounds};
use crate::replica::Command;
use crate::round::{Group, Members, Round};

/// One operation under way, and whom its protocol asks.
pub struct Operation<'a> {
    pub members: &'a Members,
    pub reads: Group,
    pub writes: Group,
    pub rounds: &'a Rounds,
}

impl Operation<'_> {
    pub(super) fn read_round(&self, own: Command, others: &Command) -> Result<Round, Failure> {
        let alone = self.reads == self.members.alone();
        self.rounds.add(u32::from(!alone));
        let group = self.reads.clone();
        self.members.round(group, own, others, Bytes::new())
    }

    pub(super) fn write_round(&self, command: &Command, body: Bytes) -> Result<Round, Failure> {
        let (group, own) = (self.writes.clone(), command.clone());
        let round = self.members.round(group, own, command, body)?;
        self.rounds.add(1);
        Ok(round)
    }

    /// A round that carries no work.
    pub async fn nothing(&self) -> Result<(), Failure> {
        let mut round = self.read_round(Command::Nothing, &Command::Nothing)?;
        round.quorum().await
    }
}
