//! What one replica can be asked, by its own node or by another.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, Version};
use crate::record::{BucketState, ObjectName, Record};
use crate::store::{Page, Query, Store};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    /// A round that carries no work.
    Nothing,
    Buckets,
    Bucket {
        name: String,
    },
    /// Creates the bucket unless it is there.
    CreateBucket {
        name: String,
        at: Version,
    },
    MergeBucket {
        name: String,
        state: BucketState,
    },
    List {
        bucket: String,
        query: Query,
        /// The digest of the asker's own page, which needs no sending.
        known: Option<[u8; 16]>,
    },
    Get {
        name: ObjectName,
        /// Whether the body of a value newer than `known` is wanted.
        body: bool,
        known: Version,
    },
    /// The body travels beside.
    Write {
        name: ObjectName,
        /// The bucket as the sender knows it, for a replica that missed its creation.
        bucket: BucketState,
        record: Record,
    },
}

impl Command {
    pub fn writes(&self) -> bool {
        matches!(
            self,
            Self::CreateBucket { .. } | Self::MergeBucket { .. } | Self::Write { .. }
        )
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    Nothing,
    Buckets(Vec<(String, BucketState)>),
    /// The bucket as it was before the command.
    Bucket(BucketState),
    List {
        bucket: BucketState,
        /// None: the same as the asker's.
        page: Option<Page>,
    },
    /// If the body was wanted and the record is newer than `known`, the body travels beside.
    Get {
        bucket: BucketState,
        record: Option<Record>,
    },
    /// The record, or one at least as new, is on disk.
    Written(BucketState),
    /// The replica knows of no such bucket.
    Refused(BucketState),
    Failed(String),
}

pub struct Replica {
    store: Arc<Store>,
    clock: Arc<Clock>,
}

impl Replica {
    pub fn new(store: Arc<Store>, clock: Arc<Clock>) -> Self {
        Self { store, clock }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Carries out a command; what it changed is on disk when this returns.
    pub async fn carry_out(&self, command: Command, body: Bytes) -> (Answer, Bytes) {
        let needs_disk = command.writes() || matches!(command, Command::Get { body: true, .. });
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let work = move || answer(&store, &clock, command, &body);
        let answered = if needs_disk {
            // Syncing takes as long as the disk likes; the reactor must not wait for it.
            let joined = tokio::task::spawn_blocking(work).await;
            joined.unwrap_or_else(|error| Err(io::Error::other(error)))
        } else {
            work()
        };
        answered.unwrap_or_else(|error| (Answer::Failed(error.to_string()), Bytes::new()))
    }
}

fn answer(
    store: &Store,
    clock: &Clock,
    command: Command,
    body: &[u8],
) -> io::Result<(Answer, Bytes)> {
    let mut beside = Bytes::new();
    let answer = match command {
        Command::Nothing => Answer::Nothing,
        Command::Buckets => Answer::Buckets(store.buckets()),
        Command::Bucket { name } => Answer::Bucket(store.bucket(&name)),
        Command::CreateBucket { name, at } => {
            clock.observe(at);
            let before = store.bucket(&name);
            if !before.alive() {
                let created = BucketState {
                    created: at,
                    ..before
                };
                store.merge_bucket(&name, created)?;
            }
            Answer::Bucket(before)
        }
        Command::MergeBucket { name, state } => {
            clock.observe(state.created.max(state.deleted));
            let before = store.bucket(&name);
            store.merge_bucket(&name, state)?;
            Answer::Bucket(before)
        }
        Command::List {
            bucket,
            query,
            known,
        } => {
            let page = store.page(&bucket, &query);
            let same = known.is_some_and(|known| known == page.digest());
            Answer::List {
                bucket: store.bucket(&bucket),
                page: (!same).then_some(page),
            }
        }
        Command::Get { name, body, known } => {
            let bucket = store.bucket(&name.bucket);
            let mut record = store.record(&name);
            if body
                && record.as_ref().is_some_and(|record| record.version > known)
                && let Some((read, body)) = store.read(&name)?
            {
                (record, beside) = (Some(read), body);
            }
            Answer::Get { bucket, record }
        }
        Command::Write {
            name,
            bucket,
            mut record,
        } => {
            clock.observe(record.version);
            store.merge_bucket(&name.bucket, bucket)?;
            let bucket = store.bucket(&name.bucket);
            if !bucket.alive() {
                return Ok((Answer::Refused(bucket), beside));
            }
            // Sent as it is when a record is repaired, unknown when it is new.
            if record.incarnation == Version::ZERO {
                record.incarnation = bucket.created;
            }
            store.write(&name, record, body)?;
            Answer::Written(bucket)
        }
    };
    Ok((answer, beside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defects::Flags;
    use crate::testing::{Scratch, bucket, name, record};

    fn replica(scratch: &Scratch) -> Replica {
        let store = Store::open(scratch.path(), Flags::default()).unwrap();
        Replica::new(Arc::new(store), Arc::new(Clock::new(0)))
    }

    fn write(bucket: BucketState) -> Command {
        Command::Write {
            name: name("k"),
            bucket,
            record: record(5, Some(b"body")),
        }
    }

    #[tokio::test]
    async fn a_write_creates_its_bucket_where_that_was_missed_and_is_refused_where_none_did() {
        let scratch = Scratch::new();
        let replica = replica(&scratch);
        let nobody = write(BucketState::default());
        let (answer, _) = replica.carry_out(nobody, "body".into()).await;
        assert!(matches!(answer, Answer::Refused(_)), "{answer:?}");
        assert!(replica.store().record(&name("k")).is_none());
        let (answer, _) = replica.carry_out(write(bucket(1, 0)), "body".into()).await;
        assert!(matches!(answer, Answer::Written(_)), "{answer:?}");
        assert!(replica.store().bucket("b").alive());
    }

    #[tokio::test]
    async fn a_body_is_sent_only_to_one_who_does_not_have_it() {
        let scratch = Scratch::new();
        let replica = replica(&scratch);
        replica.carry_out(write(bucket(1, 0)), "body".into()).await;
        for (time, sent) in [(4, "body"), (5, "")] {
            let get = Command::Get {
                name: name("k"),
                body: true,
                known: Version::of(time, 0),
            };
            let (_, body) = replica.carry_out(get, Bytes::new()).await;
            assert_eq!(body, sent);
        }
    }
}
