//! One round: a command to every node, or to some, at once, and the wait for the answer that
//! completes the quorum.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use crate::clock::{Clock, NodeId};
use crate::defects::Defects;
use crate::op::{Effect, Failure, Op, Rounds, Unavailable};
use crate::peers::{Message, Peers};
use crate::repair::Repairs;
use crate::replica::{Answer, Command, Replica};

/// Whose answers a round waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quorum {
    /// This node's own; nobody else is asked.
    Own,
    /// Those of the fastest majority, this node's own among them if it is fast.
    Majority,
    /// Those of the fastest majority that this node's own belongs to.
    MajorityWithOwn,
    /// Those of the fastest, once this node's own replica is done, well or not: what a client wrote
    /// here it reads here.
    OwnDone,
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
    pub repairs: Repairs,
    pub defects: Arc<Defects>,
    pub patience: Patience,
}

/// How long a node waits for another: a fixed time, and more while a body is on its way there.
#[derive(Clone, Copy, Debug)]
pub struct Patience(pub Duration);

impl Patience {
    /// 1 Mbit/s, the slowest link on which large bodies are of use.
    const SLOWEST_BYTES_PER_SECOND: u64 = 125_000;

    pub fn with_body(self, body: &Bytes) -> Duration {
        let millis = body.len() as u64 * 1000 / Self::SLOWEST_BYTES_PER_SECOND;
        self.0 + Duration::from_millis(millis)
    }
}

pub struct Answered {
    pub node: NodeId,
    pub answer: Answer,
    /// What came beside the answer.
    pub body: Bytes,
}

type Report = (NodeId, Result<(Answer, Bytes), String>);

pub struct Round {
    pub answers: Vec<Answered>,
    failed: Vec<(NodeId, String)>,
    quorum: Quorum,
    own: NodeId,
    asked: usize,
    needed: usize,
    effect: Effect,
    /// Planted defect: what there is after so long is enough.
    minority_after: Option<Duration>,
    reports: UnboundedReceiver<Report>,
}

impl Members {
    pub fn count(&self) -> usize {
        self.peers.ids().len() + 1
    }

    pub fn majority(&self) -> usize {
        self.count() / 2 + 1
    }

    /// Starts a round in which this node's own replica is told `own` and the others `others`.
    ///
    /// # Errors
    /// `Unavailable` at once, before anything was sent, if a write cannot reach a majority.
    pub fn round(
        &self,
        quorum: Quorum,
        own: Command,
        others: &Command,
        body: Bytes,
        rounds: &Rounds,
    ) -> Result<Round, Failure> {
        let effect = if own.writes() {
            Effect::Unknown
        } else {
            Effect::None
        };
        let reachable = self.peers.connected_count() + 1;
        let minority_after = self.defects.minority_after();
        if own.writes() && reachable < self.majority() && minority_after.is_none() {
            let (count, needed) = (self.count(), self.majority());
            let why = format!("{reachable} of {count} nodes can be reached, {needed} are needed");
            return Err(unavailable(why, Effect::None));
        }
        let (sender, reports) = unbounded_channel();
        let alone = quorum == Quorum::Own;
        if !alone {
            rounds.add(1);
            self.ask_others(&self.peers.ids(), others, &body, &sender);
        }
        self.ask_own(own, body, sender);
        Ok(Round {
            answers: vec![],
            failed: vec![],
            quorum,
            own: self.own,
            asked: if alone { 1 } else { self.count() },
            needed: if alone { 1 } else { self.majority() },
            effect,
            minority_after,
            reports,
        })
    }

    /// Starts a round among these nodes only, all of which are told the same; `needed` answers make
    /// its quorum. The rounds it costs are for the caller to count: see [`Round::went_out`].
    ///
    /// # Errors
    /// `Unavailable` at once, before anything was sent, if a write cannot reach so many.
    pub fn round_among(
        &self,
        nodes: &[NodeId],
        needed: usize,
        command: Command,
        body: Bytes,
    ) -> Result<Round, Failure> {
        let (others, own) = self.apart(nodes);
        let effect = match command.writes() {
            true => Effect::Unknown,
            false => Effect::None,
        };
        let reached = others.iter().filter(|&&id| self.peers.is_connected(id));
        let reachable = reached.count() + usize::from(own);
        let minority_after = self.defects.minority_after();
        if command.writes() && reachable < needed && minority_after.is_none() {
            let asked = nodes.len();
            let why =
                format!("{reachable} of {asked} replicas can be reached, {needed} are needed");
            return Err(unavailable(why, Effect::None));
        }
        let (sender, reports) = unbounded_channel();
        self.ask_others(&others, &command, &body, &sender);
        if own {
            self.ask_own(command, body, sender);
        }
        Ok(Round {
            answers: vec![],
            failed: vec![],
            quorum: if own {
                Quorum::OwnDone
            } else {
                Quorum::Majority
            },
            own: self.own,
            asked: nodes.len(),
            needed,
            effect,
            minority_after,
            reports,
        })
    }

    /// Those of the nodes that are others, and whether this node is among them.
    pub fn apart(&self, nodes: &[NodeId]) -> (Vec<NodeId>, bool) {
        let others = nodes.iter().copied().filter(|&id| id != self.own);
        (others.collect(), nodes.contains(&self.own))
    }

    fn ask_others(
        &self,
        nodes: &[NodeId],
        command: &Command,
        body: &Bytes,
        sender: &UnboundedSender<Report>,
    ) {
        let head = encode(&PeerRequest::Command(command.clone()));
        for &id in nodes {
            let (members, sender) = (self.clone(), sender.clone());
            let (head, body) = (head.clone(), body.clone());
            tokio::spawn(async move {
                let report = members.ask(id, Message { head, body }).await;
                let _ = sender.send((id, report));
            });
        }
    }

    fn ask_own(&self, command: Command, body: Bytes, sender: UnboundedSender<Report>) {
        let (replica, id) = (self.replica.clone(), self.own);
        tokio::spawn(async move {
            let report = judge(replica.carry_out(command, body).await);
            let report = report.map_err(|error| format!("this node: {error}"));
            let _ = sender.send((id, report));
        });
    }

    async fn ask(&self, id: NodeId, message: Message) -> Result<(Answer, Bytes), String> {
        let limit = self.patience.with_body(&message.body);
        let answered = self.peers.request(id, message, limit).await;
        let Message { head, body } = answered.map_err(|error| self.blame(id, &error))?;
        let answer = postcard::from_bytes(&head).map_err(|error| self.blame(id, &error))?;
        judge((answer, body)).map_err(|error| self.blame(id, &error))
    }

    fn blame(&self, id: NodeId, error: &dyn std::fmt::Display) -> String {
        format!("{}: {error}", self.peers.name(id))
    }
}

fn judge((answer, body): (Answer, Bytes)) -> Result<(Answer, Bytes), String> {
    match answer {
        Answer::Failed(error) => Err(error),
        answer => Ok((answer, body)),
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

    /// The nodes that have answered well.
    pub fn answered(&self) -> Vec<NodeId> {
        self.answers.iter().map(|answered| answered.node).collect()
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
        let (had, asked, needed) = (self.answers.len(), self.asked, self.needed);
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
        let own = |answered: &&Answered| answered.node == self.own;
        self.answers.iter().filter(own).count() < self.needed
    }

    /// Waits for all that answer at all.
    pub async fn all(&mut self) {
        while self.one_more().await {}
    }

    pub fn reached(&self) -> bool {
        let answered = || {
            self.answers
                .iter()
                .any(|answered| answered.node == self.own)
        };
        let failed = || self.failed.iter().any(|(node, _)| *node == self.own);
        let own = match self.quorum {
            Quorum::Own | Quorum::Majority => true,
            Quorum::MajorityWithOwn => answered(),
            Quorum::OwnDone => answered() || failed(),
        };
        self.answers.len() >= self.needed && own
    }

    fn impossible(&self) -> bool {
        let own = || self.failed.iter().any(|(node, _)| *node == self.own);
        let too_many = self.failed.len() + self.needed > self.asked;
        too_many || (self.quorum == Quorum::MajorityWithOwn && own())
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
