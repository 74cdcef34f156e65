//! Stale replicas, noticed while reading and mended in the background.
//!
//! A reader goes on as soon as a majority has answered. What the others answer later is watched
//! here; if replicas differ, the object or bucket is looked at again a little later, because most
//! differences are writes still on their way, and only what differs then is sent.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::clock::Version;
use crate::listing::differing;
use crate::op::Rounds;
use crate::peers::Message;
use crate::protocol::{
    Answered, Members, PeerRequest, Quorum, Round, bucket_of, encode, pages_of, record_of,
};
use crate::replica::{Answer, Command};
use crate::store::{BucketState, ObjectName, Page};

/// Longer than a write takes to reach the slowest node of any topology that is of interest.
const DELAY: Duration = Duration::from_secs(1);
/// Suspicions beyond this many are dropped: the next read raises them again.
const MAX_SUSPECTS: usize = 4096;
const AT_ONCE: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Suspect {
    Object(ObjectName),
    Bucket(String),
}

/// Where readers report what they saw.
#[derive(Clone)]
pub struct Repairs {
    queue: mpsc::UnboundedSender<(Instant, Suspect)>,
    known: Arc<Mutex<HashSet<Suspect>>>,
}

pub struct Worker {
    queue: mpsc::UnboundedReceiver<(Instant, Suspect)>,
    known: Arc<Mutex<HashSet<Suspect>>>,
}

pub fn channel() -> (Repairs, Worker) {
    let (sender, queue) = mpsc::unbounded_channel();
    let known = Arc::<Mutex<HashSet<Suspect>>>::default();
    let repairs = Repairs {
        queue: sender,
        known: known.clone(),
    };
    (repairs, Worker { queue, known })
}

impl Repairs {
    pub fn watch_get(&self, mut round: Round, name: ObjectName) {
        let repairs = self.clone();
        tokio::spawn(async move {
            round.all().await;
            let versions = round
                .answers
                .iter()
                .map(|a| record_of(a).map(|r| r.version));
            if differ(versions) {
                repairs.suspect(Suspect::Object(name));
            }
        });
    }

    pub fn watch_list(&self, mut round: Round, bucket: String, own: Page) {
        let repairs = self.clone();
        tokio::spawn(async move {
            round.all().await;
            for key in differing(&pages_of(&round.answers, &own)) {
                let bucket = bucket.clone();
                repairs.suspect(Suspect::Object(ObjectName { bucket, key }));
            }
        });
    }

    pub fn watch_buckets(&self, mut round: Round) {
        let repairs = self.clone();
        tokio::spawn(async move {
            round.all().await;
            for (name, merged) in merge_buckets(&round.answers) {
                let agrees = |answered: &Answered| match &answered.answer {
                    Answer::Buckets(buckets) => buckets.contains(&(name.clone(), merged)),
                    _ => true,
                };
                if !round.answers.iter().all(agrees) {
                    repairs.suspect(Suspect::Bucket(name));
                }
            }
        });
    }

    fn suspect(&self, suspect: Suspect) {
        let mut known = self.known.lock().expect("no holder panics");
        if known.len() < MAX_SUSPECTS && known.insert(suspect.clone()) {
            let _ = self.queue.send((Instant::now() + DELAY, suspect));
        }
    }
}

fn differ<T: PartialEq>(mut values: impl Iterator<Item = T>) -> bool {
    let first = values.next();
    values.any(|value| Some(value) != first)
}

/// All buckets that some answer knows of, as all answers together know them.
pub fn merge_buckets(answers: &[Answered]) -> BTreeMap<String, BucketState> {
    let mut merged = BTreeMap::<_, BucketState>::new();
    for answered in answers {
        if let Answer::Buckets(buckets) = &answered.answer {
            for (name, state) in buckets {
                let known = merged.entry(name.clone()).or_default();
                *known = known.merge(*state);
            }
        }
    }
    merged
}

impl Worker {
    /// Mends what is suspected; returns when nobody can suspect any more.
    pub async fn run(mut self, members: Members) {
        let slots = Arc::new(Semaphore::new(AT_ONCE));
        while let Some((due, suspect)) = self.queue.recv().await {
            let slot = slots.clone().acquire_owned().await;
            let (members, known) = (members.clone(), self.known.clone());
            sleep_until(due).await;
            tokio::spawn(async move {
                known.lock().expect("no holder panics").remove(&suspect);
                match suspect {
                    Suspect::Object(name) => mend_object(&members, name).await,
                    Suspect::Bucket(name) => mend_bucket(&members, name).await,
                }
                drop(slot);
            });
        }
    }
}

async fn mend_object(members: &Members, name: ObjectName) {
    let get = |known| Command::Get {
        name: name.clone(),
        body: true,
        known,
    };
    let known = members.replica.store().record(&name);
    let known = known.map_or(Version::ZERO, |record| record.version);
    let Some(answers) = ask_all(members, get(Version::ZERO), get(known)).await else {
        return;
    };
    let newest = answers
        .iter()
        .filter_map(|answered| Some((answered, record_of(answered)?)));
    // Of the same version this node's own answer is the one with the body.
    let rank = |answered: &Answered, version| (version, answered.node == members.own);
    let newest = newest.max_by_key(|(answered, record)| rank(answered, record.version));
    let Some((source, record)) = newest else {
        return;
    };
    if record.version == known && source.node != members.own {
        return;
    }
    let write = Command::Write {
        name: name.clone(),
        bucket: bucket_of(&answers),
        record: record.clone(),
    };
    let stale =
        |answered: &&Answered| record_of(answered).map(|r| r.version) < Some(record.version);
    let stale: Vec<_> = answers
        .iter()
        .filter(stale)
        .map(|answered| answered.node)
        .collect();
    tell(members, &stale, write, source.body.clone()).await;
}

async fn mend_bucket(members: &Members, name: String) {
    let command = Command::Bucket { name: name.clone() };
    let Some(answers) = ask_all(members, command.clone(), command).await else {
        return;
    };
    let state = bucket_of(&answers);
    let stale =
        |answered: &&Answered| !matches!(answered.answer, Answer::Bucket(known) if known == state);
    let stale: Vec<_> = answers
        .iter()
        .filter(stale)
        .map(|answered| answered.node)
        .collect();
    tell(
        members,
        &stale,
        Command::MergeBucket { name, state },
        Bytes::new(),
    )
    .await;
}

async fn ask_all(members: &Members, own: Command, others: Command) -> Option<Vec<Answered>> {
    let uncounted = Rounds::default();
    let round = members.round(Quorum::Majority, own, &others, Bytes::new(), &uncounted);
    let mut round = round.ok()?;
    round.all().await;
    Some(round.answers)
}

/// Failures are not pursued: the next read finds the replica stale again.
async fn tell(members: &Members, nodes: &[u16], command: Command, body: Bytes) {
    let head = encode(&PeerRequest::Command(command.clone()));
    for &node in nodes {
        if node == members.own {
            members
                .replica
                .carry_out(command.clone(), body.clone())
                .await;
        } else {
            let message = Message {
                head: head.clone(),
                body: body.clone(),
            };
            let limit = members.patience.with_body(&body);
            let _ = members.peers.request(node, message, limit).await;
        }
    }
}
