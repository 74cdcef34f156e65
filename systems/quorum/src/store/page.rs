//! One replica's share of a listing.

use std::collections::BTreeMap;
use std::ops::Bound;

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use crate::clock::Version;
use crate::record::{BucketState, Record};

/// Bounds a page in a range that is full of tombstones.
const MAX_ENTRIES: usize = 20_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Query {
    pub prefix: String,
    /// The key after which the listing goes on.
    pub after: Option<String>,
    pub limit: usize,
}

/// The records of a range, tombstones too: another replica may hold an older value of a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    pub entries: Vec<Listed>,
    /// The last key looked at, if the range goes on beyond it.
    pub end: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    pub key: String,
    pub version: Version,
    pub incarnation: Version,
    pub object: Option<Summary>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub size: u64,
    pub md5: [u8; 16],
}

impl Page {
    /// Replicas that agree send this instead of a page: 1,000 keys would not fit into TCP's initial
    /// window and cost more round trips than the one that is promised.
    pub fn digest(&self) -> [u8; 16] {
        let encoded = postcard::to_stdvec(self).expect("a page always encodes");
        Md5::digest(&encoded).into()
    }

    /// Reads the range until `query.limit` visible objects were found.
    pub fn collect<'a>(
        objects: &'a BTreeMap<String, impl AsRef<Record> + 'a>,
        bucket: BucketState,
        query: &Query,
    ) -> Self {
        let start = match &query.after {
            Some(key) if *key >= query.prefix => Bound::Excluded(key.as_str()),
            _ => Bound::Included(query.prefix.as_str()),
        };
        let mut page = Self::default();
        let mut visible = 0;
        for (key, record) in objects.range::<str, _>((start, Bound::Unbounded)) {
            if !key.starts_with(&query.prefix) {
                break;
            }
            if visible == query.limit || page.entries.len() == MAX_ENTRIES {
                page.end = page.entries.last().map(|last| last.key.clone());
                break;
            }
            let record = record.as_ref();
            visible += usize::from(record.object.is_some() && bucket.shows(record.incarnation));
            page.entries.push(Listed {
                key: key.clone(),
                version: record.version,
                incarnation: record.incarnation,
                object: record.object.as_ref().map(|meta| Summary {
                    size: meta.size,
                    md5: meta.md5,
                }),
            });
        }
        page
    }
}
