//! What one replica can be asked, by its own node or by another.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, Version};
use crate::store::{BucketState, ObjectName, Page, Query, Record, Store};

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
        let answered = if needs_disk {
            // Syncing takes as long as the disk likes; the reactor must not wait for it.
            let (store, clock) = (self.store.clone(), self.clock.clone());
            let work = move || on_disk(&store, &clock, command, &body);
            let joined = tokio::task::spawn_blocking(work).await;
            joined.unwrap_or_else(|error| Err(io::Error::other(error)))
        } else {
            Ok((self.look_up(command), Bytes::new()))
        };
        answered.unwrap_or_else(|error| (Answer::Failed(error.to_string()), Bytes::new()))
    }

    fn look_up(&self, command: Command) -> Answer {
        match command {
            Command::Buckets => Answer::Buckets(self.store.buckets()),
            Command::Bucket { name } => Answer::Bucket(self.store.bucket(&name)),
            Command::List {
                bucket,
                query,
                known,
            } => {
                let page = self.store.page(&bucket, &query);
                let same = known.is_some_and(|known| known == page.digest());
                Answer::List {
                    bucket: self.store.bucket(&bucket),
                    page: (!same).then_some(page),
                }
            }
            Command::Get { name, .. } => Answer::Get {
                bucket: self.store.bucket(&name.bucket),
                record: self.store.record(&name),
            },
            _ => Answer::Nothing,
        }
    }
}

fn on_disk(
    store: &Store,
    clock: &Clock,
    command: Command,
    body: &[u8],
) -> io::Result<(Answer, Bytes)> {
    let without_body = |answer| Ok((answer, Bytes::new()));
    match command {
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
            without_body(Answer::Bucket(before))
        }
        Command::MergeBucket { name, state } => {
            clock.observe(state.created.max(state.deleted));
            let before = store.bucket(&name);
            store.merge_bucket(&name, state)?;
            without_body(Answer::Bucket(before))
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
                return without_body(Answer::Refused(bucket));
            }
            // Sent as it is when a record is repaired, unknown when it is new.
            if record.incarnation == Version::ZERO {
                record.incarnation = bucket.created;
            }
            store.write(&name, record, body)?;
            without_body(Answer::Written(bucket))
        }
        Command::Get { name, known, .. } => {
            let newer = |record: &Record| record.version > known;
            let bucket = store.bucket(&name.bucket);
            match store.record(&name) {
                Some(record) if newer(&record) => {
                    let (record, body) = store.read(&name)?.unwrap_or((record, Bytes::new()));
                    let record = Some(record);
                    Ok((Answer::Get { bucket, record }, body))
                }
                record => without_body(Answer::Get { bucket, record }),
            }
        }
        _ => without_body(Answer::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Meta, crc32};
    use crate::testing::Scratch;

    fn replica(scratch: &Scratch) -> Replica {
        let store = Store::open(scratch.path()).unwrap();
        Replica::new(Arc::new(store), Arc::new(Clock::new(0)))
    }

    fn name() -> ObjectName {
        ObjectName {
            bucket: "b".into(),
            key: "k".into(),
        }
    }

    fn write(time: u64, bucket: BucketState) -> Command {
        let meta = Meta {
            size: 4,
            md5: [0; 16],
            crc32: crc32(b"body"),
            content_type: None,
            user: vec![],
        };
        Command::Write {
            name: name(),
            bucket,
            record: Record {
                version: Version::of(time, 1),
                incarnation: Version::ZERO,
                object: Some(meta),
            },
        }
    }

    fn get(known: Version) -> Command {
        Command::Get {
            name: name(),
            body: true,
            known,
        }
    }

    fn created(time: u64) -> BucketState {
        BucketState {
            created: Version::of(time, 1),
            deleted: Version::ZERO,
        }
    }

    #[tokio::test]
    async fn a_write_into_a_bucket_nobody_created_is_refused_and_leaves_nothing() {
        let scratch = Scratch::new();
        let replica = replica(&scratch);
        let (answer, _) = replica
            .carry_out(write(5, BucketState::default()), "body".into())
            .await;
        assert!(matches!(answer, Answer::Refused(_)), "{answer:?}");
        assert!(replica.store().record(&name()).is_none());
    }

    #[tokio::test]
    async fn a_replica_that_missed_the_creation_learns_of_it_from_the_write() {
        let scratch = Scratch::new();
        let replica = replica(&scratch);
        let (answer, _) = replica.carry_out(write(5, created(1)), "body".into()).await;
        assert!(matches!(answer, Answer::Written(_)), "{answer:?}");
        assert!(replica.store().bucket("b").alive());
    }

    #[tokio::test]
    async fn a_body_is_sent_only_to_one_who_does_not_have_it() {
        let scratch = Scratch::new();
        let replica = replica(&scratch);
        replica.carry_out(write(5, created(1)), "body".into()).await;
        let (_, to_the_stale) = replica
            .carry_out(get(Version::of(4, 0)), Bytes::new())
            .await;
        assert_eq!(to_the_stale, "body");
        let (_, to_the_fresh) = replica
            .carry_out(get(Version::of(5, 1)), Bytes::new())
            .await;
        assert!(to_the_fresh.is_empty());
    }

    #[tokio::test]
    async fn creating_a_bucket_that_is_there_changes_nothing() {
        let scratch = Scratch::new();
        let replica = replica(&scratch);
        for time in [1, 2] {
            let at = Version::of(time, 0);
            let name = "b".into();
            let command = Command::CreateBucket { name, at };
            replica.carry_out(command, Bytes::new()).await;
        }
        assert_eq!(replica.store().bucket("b").created, Version::of(1, 0));
    }
}
