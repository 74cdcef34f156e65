//! What a client can ask of the store, whatever API it speaks, and what comes back.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::clock::Version;
use crate::listing::Listing;
use crate::record::{Meta, ObjectName};
use crate::store::Query;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Op {
    ListBuckets,
    CreateBucket {
        bucket: String,
    },
    HeadBucket {
        bucket: String,
    },
    DeleteBucket {
        bucket: String,
    },
    List {
        bucket: String,
        query: Query,
    },
    Get {
        name: ObjectName,
        /// False: only what is known about the object (HeadObject).
        body: bool,
    },
    /// The body travels beside.
    Put {
        name: ObjectName,
        meta: Meta,
    },
    Delete {
        name: ObjectName,
    },
}

impl Op {
    pub fn writes(&self) -> bool {
        !matches!(
            self,
            Self::ListBuckets | Self::HeadBucket { .. } | Self::List { .. } | Self::Get { .. }
        )
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    Done,
    /// Names with their creation, in order.
    Buckets(Vec<(String, Version)>),
    Listing(Listing),
    Object {
        version: Version,
        meta: Meta,
    },
}

/// A reply and, for Get, the body.
pub type Response = (Reply, Bytes);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Failure {
    NoSuchBucket,
    NoSuchKey,
    BucketExists,
    BucketNotEmpty,
    /// Too few nodes answered.
    Unavailable(Unavailable),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unavailable {
    pub why: String,
    pub effect: Effect,
}

/// What a failed request may have left behind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    None,
    /// The write reached some nodes and may come to light later.
    Unknown,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = match self.effect {
            Effect::None => "nothing was changed",
            Effect::Unknown => "the write may or may not be kept",
        };
        write!(f, "{}; {effect}", self.why)
    }
}

/// In which an API tells a client how many sequential network rounds its request took.
pub const ROUNDS_HEADER: &str = "x-quorum-rounds";

/// Counts the sequential network rounds of one request: the evidence for the table in the README.
#[derive(Default)]
pub struct Rounds(AtomicU32);

impl Rounds {
    pub fn add(&self, rounds: u32) {
        self.0.fetch_add(rounds, Ordering::Relaxed);
    }

    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
