//! One round: a command to every node of a group at once, and the wait for the answer that
//! completes the quorum.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::clock::{Clock, NodeId, Version};
use crate::defects::{Alone, Defects};
use crate::op::{Effect, Failure, Op, Unavailable};
use crate::peers::{Message, Peers};
use crate::record::{ObjectName, Record};
use crate::replica::{Answer, Command, Replica};
use crate::suspects::Repairs;

/// Who is asked in a round, and whose answers it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub nodes: Vec<NodeId>,
    /// How many of them must answer.
    pub needed: usize,
    pub own: Own,
}

/// What a round asks of this node's own answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Own {
    /// No more than of any other.
    AsAny,
    /// It is one of those that complete the quorum.
    Required,
    /// The replica is done, well or not: what a client wrote here it reads here.
    Done,
}

/// A request from node to node.
#[derive(Debug, Serialize, Deserialize)]
pub enum PeerRequest {
    Command(Command),
    /// A client's operation, passed on to the leader.
    Forward(Op),
}

/// This node's replica and the way to the others.
#[derive(Clone)]
pub struct Members {
    pub own: NodeId,
    pub clock: Arc<Clock>,
    pub replica: Arc<Replica>,
    pub peers: Arc<Peers>,
    pub repairs: Arc<Repairs>,
    pub defects: Arc<Defects>,
    /// `--peer-timeout-ms`
    pub timeout: Duration,
}

pub struct Answered {
    pub node: NodeId,
    pub answer: Answer,
    /// What came beside the answer.
    pub body: Bytes,
}

/// 1 Mbit/s, the slowest link on which large bodies are of use.
const SLOWEST_BYTES_PER_SECOND: u64 = 125_000;

type Report = (NodeId, Result<(Answer, Bytes), String>);

pub struct Round {
    pub answers: Vec<Answered>,
    pub group: Group,
    failed: Vec<(NodeId, String)>,
    own: NodeId,
    asked: usize,
    effect: Effect,
    /// Planted defect: what there is after so long is enough.
    minority_after: Option<Duration>,
    reports: UnboundedReceiver<Report>,
}

impl Members {
    /// This node and no other.
    pub fn alone(&self) -> Group {
        Group {
            nodes: vec![self.own],
            needed: 1,
            own: Own::AsAny,
        }
    }

    /// All nodes, of which a majority must answer.
    pub fn majority(&self, own: Own) -> Group {
        let count = self.peers.count() + 1;
        Group {
            nodes: (0..count as NodeId).collect(),
            needed: count / 2 + 1,
            own,
        }
    }

    /// These nodes, of which so many must answer; this node's own replica, where it is one of them,
    /// is waited for.
    pub fn group(&self, nodes: &[NodeId], needed: usize) -> Group {
        let own = match nodes.contains(&self.own) {
            true => Own::Done,
            false => Own::AsAny,
        };
        Group {
            nodes: nodes.to_vec(),
            needed,
            own,
        }
    }

    /// Starts a round in which this node's own replica is told `own` and the others `others`. What
    /// it costs is for the caller to count.
    ///
    /// # Errors
    /// `Unavailable` at once, before anything was sent, if a write cannot reach enough nodes.
    pub fn round(
        &self,
        group: Group,
        own: Command,
        others: &Command,
        body: Bytes,
    ) -> Result<Round, Failure> {
        let (asked, needed) = (group.nodes.len(), group.needed);
        let minority_after = self.defects.minority_after();
        if own.writes() && minority_after.is_none() {
            let reached = |&&id: &&NodeId| id == self.own || self.peers.is_connected(id);
            let reached = group.nodes.iter().filter(reached).count();
            if reached < needed {
                let why = format!("{reached} of {asked} nodes can be reached, {needed} are needed");
                return Err(unavailable(why, Effect::None));
            }
        }
        let effect = match own.writes() {
            true => Effect::Unknown,
            false => Effect::None,
        };
        let (sender, reports) = unbounded_channel();
        let ask = |id, command: Command| {
            let (members, body, sender) = (self.clone(), body.clone(), sender.clone());
            tokio::spawn(async move {
                let report = members.tell(id, command, body).await;
                let _ = sender.send((id, report));
            });
        };
        for &id in group.nodes.iter().filter(|&&id| id != self.own) {
            ask(id, others.clone());
        }
        if group.nodes.contains(&self.own) {
            ask(self.own, own);
        }
        Ok(Round {
            answers: vec![],
            group,
            failed: vec![],
            own: self.own,
            asked,
            effect,
            minority_after,
            reports,
        })
    }

    /// Has one node, this one or another, carry out a command.
    ///
    /// # Errors
    /// Which node did not, and why.
    pub async fn tell(
        &self,
        node: NodeId,
        command: Command,
        body: Bytes,
    ) -> Result<(Answer, Bytes), String> {
        let (name, answered) = match node == self.own {
            true => ("this node", Ok(self.replica.carry_out(command, body).await)),
            false => (self.peers.name(node), self.ask(node, command, body).await),
        };
        match answered {
            Ok((Answer::Failed(error), _)) | Err(error) => Err(format!("{name}: {error}")),
            Ok(answered) => Ok(answered),
        }
    }

    /// How long a node waits for another: a fixed time, and more while a body is on its way there.
    pub fn patience(&self, body: &Bytes) -> Duration {
        let millis = body.len() as u64 * 1000 / SLOWEST_BYTES_PER_SECOND;
        self.timeout + Duration::from_millis(millis)
    }

    async fn ask(
        &self,
        node: NodeId,
        command: Command,
        body: Bytes,
    ) -> Result<(Answer, Bytes), String> {
        let limit = self.patience(&body);
        let head = encode(&PeerRequest::Command(command));
        let answered = self
            .peers
            .request(node, Message { head, body }, limit)
            .await;
        let Message { head, body } = answered.map_err(|error| error.to_string())?;
        let answer = postcard::from_bytes(&head).map_err(|error| error.to_string())?;
        Ok((answer, body))
    }

    /// Takes note of an acknowledged write; with a planted defect too few may have it.
    pub fn acknowledged(
        &self,
        round: &Round,
        name: ObjectName,
        record: &Record,
        incarnation: Version,
    ) {
        self.defects.acknowledged(record.object.as_ref());
        if round.reached() || record.object.is_none() {
            return;
        }
        let alone = Alone {
            name,
            incarnation,
            version: record.version,
            nodes: round.group.nodes.clone(),
            needed: round.group.needed,
        };
        self.defects.acknowledged_alone(alone, &round.answered());
    }
}

impl Round {
    /// Waits for the quorum; `answers` then holds it.
    ///
    /// # Errors
    /// `Unavailable` as soon as the quorum cannot be had any more.
    pub async fn quorum(&mut self) -> Result<(), Failure> {
        if let Some(wait) = self.minority_after {
            let _ = timeout(wait, self.all_it_takes()).await;
            if !self.answers.is_empty() {
                return Ok(());
            }
        }
        self.full_quorum().await
    }

    /// Waits for the quorum until nothing more can come.
    async fn all_it_takes(&mut self) {
        while !self.reached() && self.one_more().await {}
    }

    /// Waits for the quorum, whatever defects are planted.
    pub async fn full_quorum(&mut self) -> Result<(), Failure> {
        while !self.reached() {
            if self.impossible() || !self.one_more().await {
                return Err(self.too_few());
            }
        }
        Ok(())
    }

    /// What a request is refused with that did not get its quorum.
    pub fn too_few(&self) -> Failure {
        let (had, asked, needed) = (self.answers.len(), self.asked, self.group.needed);
        let errors = self.failed.iter().map(|(_, error)| error.as_str());
        let errors = errors.collect::<Vec<_>>().join("; ");
        let why = format!("{had} of {asked} nodes answered, {needed} are needed ({errors})");
        unavailable(why, self.effect)
    }

    /// Counts what an earlier round heard as heard in this one.
    #[must_use]
    pub fn after(mut self, earlier: Self) -> Self {
        self.asked += earlier.asked;
        self.answers.extend(earlier.answers);
        self.failed.extend(earlier.failed);
        self
    }

    /// Whether another node had to be waited for: whether this node's own answer was not enough.
    pub fn went_out(&self) -> bool {
        usize::from(self.own_answered()) < self.group.needed
    }

    /// Waits for all that answer at all.
    pub async fn all(&mut self) {
        while self.one_more().await {}
    }

    pub fn reached(&self) -> bool {
        let own = match self.group.own {
            Own::AsAny => true,
            Own::Required => self.own_answered(),
            Own::Done => self.own_answered() || self.own_failed(),
        };
        self.answers.len() >= self.group.needed && own
    }

    fn impossible(&self) -> bool {
        let too_many = self.failed.len() + self.group.needed > self.asked;
        too_many || (self.group.own == Own::Required && self.own_failed())
    }

    /// The nodes that have answered well.
    pub fn answered(&self) -> Vec<NodeId> {
        self.answers.iter().map(|answered| answered.node).collect()
    }

    fn own_answered(&self) -> bool {
        self.answers
            .iter()
            .any(|answered| answered.node == self.own)
    }

    fn own_failed(&self) -> bool {
        self.failed.iter().any(|(node, _)| *node == self.own)
    }

    /// Takes in one more report; false if there is none to come.
    pub async fn one_more(&mut self) -> bool {
        match self.reports.recv().await {
            Some((node, Ok((answer, body)))) => self.answers.push(Answered { node, answer, body }),
            Some((node, Err(error))) => self.failed.push((node, error)),
            None => return false,
        }
        true
    }
}

pub fn unavailable(why: String, effect: Effect) -> Failure {
    Failure::Unavailable(Unavailable { why, effect })
}

pub fn encode(value: &impl Serialize) -> Bytes {
    let encoded = postcard::to_stdvec(value).expect("messages always encode");
    encoded.into()
}
