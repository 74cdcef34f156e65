//! Pages of several replicas merged into one listing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::BucketState;
use crate::store::{Listed, Page, Query};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    pub objects: Vec<Listed>,
    /// The key after which the next listing goes on; None: this was all.
    pub next: Option<String>,
}

/// The newest version of every key wins, then what is not visible is left out.
///
/// A page that was cut off says nothing about the keys beyond its end, so the listing goes no
/// further than the first such end; it may then hold fewer than `query.limit` objects and still go
/// on, as S3 allows.
pub fn merge(pages: &[Page], bucket: BucketState, query: &Query) -> Listing {
    let horizon = pages.iter().filter_map(|page| page.end.as_deref()).min();
    let mut newest: BTreeMap<&str, &Listed> = BTreeMap::new();
    for entry in pages.iter().flat_map(|page| &page.entries) {
        if horizon.is_some_and(|horizon| entry.key.as_str() > horizon) {
            continue;
        }
        let known = newest.entry(&entry.key).or_insert(entry);
        if known.version < entry.version {
            *known = entry;
        }
    }
    let visible = |entry: &&Listed| entry.object.is_some() && bucket.shows(entry.incarnation);
    let mut visible = newest.into_values().filter(visible).cloned();
    let objects: Vec<_> = visible.by_ref().take(query.limit).collect();
    let next = match visible.next() {
        Some(_) => objects.last().map(|last| last.key.clone()),
        None => horizon.map(str::to_owned),
    };
    Listing { objects, next }
}

/// Keys on which some page differs from the newest: replicas to repair.
pub fn differing(pages: &[Page]) -> Vec<String> {
    let mut seen: BTreeMap<&str, Vec<&Listed>> = BTreeMap::new();
    for entry in pages.iter().flat_map(|page| &page.entries) {
        seen.entry(&entry.key).or_default().push(entry);
    }
    let within = |key: &str| {
        let covers = |page: &&Page| page.end.as_deref().is_none_or(|end| key <= end);
        pages.iter().filter(covers).count()
    };
    let differs = |(key, entries): &(&str, Vec<&Listed>)| {
        let same = entries.iter().all(|e| e.version == entries[0].version);
        !same || entries.len() < within(key)
    };
    let keys = seen.into_iter().filter(differs);
    keys.map(|(key, _)| key.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Version;
    use crate::store::Summary;
    use crate::testing::bucket;

    /// Keys with the times of their versions, negative for tombstones, up to an end.
    fn page(entries: &[(&str, i64)], end: Option<&str>) -> Page {
        let summary = Summary {
            size: 1,
            md5: [0; 16],
        };
        let entry = |&(key, time): &(&str, i64)| Listed {
            key: key.into(),
            version: Version::of(time.unsigned_abs(), 0),
            incarnation: Version::of(1, 0),
            object: (time > 0).then_some(summary),
        };
        Page {
            entries: entries.iter().map(entry).collect(),
            end: end.map(str::to_owned),
        }
    }

    #[test]
    fn pages_merge_into_what_is_known_of_all_replicas() {
        let both = [("a", 2), ("b", 2)];
        let beyond = [("a", 2), ("b", 2), ("d", 2)];
        for (name, pages, keys, next) in [
            (
                "a tombstone hides an older value",
                [page(&[("a", 3), ("b", 2)], None), page(&[("a", -5)], None)],
                vec!["b"],
                None,
            ),
            (
                "a key that one replica alone has is listed",
                [page(&[], None), page(&[("a", 5)], None)],
                vec!["a"],
                None,
            ),
            (
                "nothing beyond the end of a cut page is believed",
                [page(&both, Some("b")), page(&beyond, None)],
                vec!["a", "b"],
                Some("b"),
            ),
            (
                "a full listing with nothing left is the last",
                [page(&both, None), page(&both, None)],
                vec!["a", "b"],
                None,
            ),
            (
                "a full listing with more to come goes on after its last key",
                [page(&beyond, None), page(&beyond, None)],
                vec!["a", "b"],
                Some("b"),
            ),
        ] {
            let query = Query {
                limit: 2,
                ..Query::default()
            };
            let listing = merge(&pages, bucket(1, 0), &query);
            let listed: Vec<_> = listing.objects.iter().map(|object| &object.key).collect();
            assert_eq!(listed, keys, "{name}");
            assert_eq!(listing.next.as_deref(), next, "{name}");
        }
    }

    #[test]
    fn differing_names_old_values_and_holes_but_not_what_a_cut_page_left_out() {
        let full = page(&[("a", 2), ("b", 3), ("c", 2), ("z", 2)], None);
        let cut = page(&[("a", 2), ("b", 2)], Some("c"));
        assert_eq!(differing(&[full, cut]), ["b", "c"]);
    }
}
