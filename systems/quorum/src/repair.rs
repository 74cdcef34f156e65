//! What is set right in the background: stale replicas that a read noticed, blobs that a replica
//! missed, and, with a planted defect, what a minority acknowledged.
//!
//! A reader goes on as soon as a majority has answered. What the others answer later is watched
//! here; if replicas differ, the object or bucket is looked at again a little later, because most
//! differences are writes still on their way, and only what differs then is sent.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use crate::answers::{bucket_of, record_of};
use crate::clock::{NodeId, Version};
use crate::defects::Alone;
use crate::log::say;
use crate::placement::{BUCKET, BUCKET_STATE};
use crate::record::ObjectName;
use crate::replica::{Answer, Command};
use crate::round::{Answered, Members, Own, Round};
use crate::suspects::Suspect;

/// Longer than a write takes to reach the slowest node of any topology that is of interest.
const DELAY: Duration = Duration::from_secs(1);
/// Planted defect: how often a node looks whether a partition has healed.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Members {
    /// Waits for the rest of a round, and has looked at again what `suspects` finds in its answers.
    pub fn watch(
        &self,
        mut round: Round,
        suspects: impl FnOnce(&[Answered]) -> Vec<Suspect> + Send + 'static,
    ) {
        let members = self.clone();
        tokio::spawn(async move {
            round.all().await;
            for suspect in suspects(&round.answers) {
                members.suspect(suspect);
            }
        });
    }

    fn suspect(&self, suspect: Suspect) {
        if !self.repairs.add(suspect.clone()) {
            return;
        }
        let members = self.clone();
        tokio::spawn(async move {
            sleep(DELAY).await;
            let _slot = members.repairs.slots.acquire().await;
            members.repairs.remove(&suspect);
            match suspect {
                Suspect::Object(name) => members.repair_object(name).await,
                Suspect::Bucket(name) => members.repair_bucket(name).await,
            };
        });
    }

    /// None: there was nothing to repair, or nobody answered.
    async fn repair_object(&self, name: ObjectName) -> Option<()> {
        let get = |known| Command::Get {
            name: name.clone(),
            body: true,
            known,
        };
        let known = self.replica.store().record(&name);
        let known = known.map_or(Version::ZERO, |record| record.version);
        let answers = self.ask_all(get(Version::ZERO), get(known)).await?;
        let held = answers.iter();
        let held = held.filter_map(|answered| Some((answered, record_of(answered)?)));
        // Of the same version this node's own answer is the one with the body.
        let rank = |answered: &Answered, version| (version, answered.node == self.own);
        let (source, record) =
            held.max_by_key(|(answered, record)| rank(answered, record.version))?;
        if record.version == known && source.node != self.own {
            return None;
        }
        let write = Command::Write {
            name: name.clone(),
            bucket: bucket_of(&answers),
            record: record.clone(),
        };
        let stale = |answered: &Answered| {
            record_of(answered).map(|record| record.version) < Some(record.version)
        };
        self.tell_those(&answers, stale, write, &source.body).await;
        Some(())
    }

    async fn repair_bucket(&self, name: String) -> Option<()> {
        let command = Command::Bucket { name: name.clone() };
        let answers = self.ask_all(command.clone(), command).await?;
        let state = bucket_of(&answers);
        let stale = |answered: &Answered| !matches!(answered.answer, Answer::Bucket(known) if known == state);
        let merge = Command::MergeBucket { name, state };
        self.tell_those(&answers, stale, merge, &Bytes::new()).await;
        Some(())
    }

    async fn ask_all(&self, own: Command, others: Command) -> Option<Vec<Answered>> {
        let group = self.majority(Own::AsAny);
        let mut round = self.round(group, own, &others, Bytes::new()).ok()?;
        round.all().await;
        Some(round.answers)
    }

    /// Failures are not pursued: the next read finds the replica stale again.
    async fn tell_those(
        &self,
        answers: &[Answered],
        stale: impl Fn(&Answered) -> bool,
        command: Command,
        body: &Bytes,
    ) {
        for answered in answers.iter().filter(|answered| stale(answered)) {
            let _ = self
                .tell(answered.node, command.clone(), body.clone())
                .await;
        }
    }

    /// Waits for the rest of a round that has its quorum, and then tells those who did not answer,
    /// every second until they have the blob or tombstone. A read of Bob's API is answered by one
    /// replica alone, so nothing else would notice: what was removed would come back with a node
    /// that was away.
    pub fn tell_missing(&self, mut round: Round, write: Command, body: Bytes) {
        let members = self.clone();
        tokio::spawn(async move {
            round.all().await;
            let answered = round.answered();
            let mut missing = round.group.nodes;
            missing.retain(|node| !answered.contains(node));
            if missing.is_empty() {
                return;
            }
            let kib = (body.len() >> 10) as u32 + 1;
            let Ok(_held) = members.repairs.missed.try_acquire_many(kib) else {
                say("a replica missed a write and is not told again: too much waits already");
                return;
            };
            while !missing.is_empty() {
                sleep(DELAY).await;
                let mut still: Vec<NodeId> = vec![];
                for node in missing {
                    let told = members.tell(node, write.clone(), body.clone()).await;
                    if !matches!(told, Ok((Answer::Written(_), _))) {
                        still.push(node);
                    }
                }
                missing = still;
            }
        });
    }

    /// Planted defect: throws away what a minority acknowledged, as soon as the quorum that it never
    /// had is reached; never returns.
    pub async fn forget_when_healed(self) {
        loop {
            sleep(LOOK_EVERY).await;
            let mut all = self.defects.take_alone().into_iter();
            for alone in all.by_ref() {
                if !self.forgotten(&alone).await {
                    // The others would wait for the same nodes.
                    self.defects.put_back([alone]);
                    break;
                }
            }
            self.defects.put_back(all);
        }
    }

    async fn forgotten(&self, alone: &Alone) -> bool {
        let bucket = match &*alone.name.bucket {
            BUCKET => BUCKET_STATE,
            name => self.replica.store().bucket(name),
        };
        let write = Command::Write {
            name: alone.name.clone(),
            bucket,
            record: alone.nothing(),
        };
        for command in [Command::Nothing, write] {
            let group = self.group(&alone.nodes, alone.needed);
            let round = self.round(group, command.clone(), &command, Bytes::new());
            let Ok(mut round) = round else { return false };
            if round.full_quorum().await.is_err() {
                return false;
            }
        }
        true
    }
}
