//! Pages of several replicas merged into one listing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::store::{After, BucketState, Listed, Page, Query};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    pub objects: Vec<Listed>,
    pub common_prefixes: Vec<String>,
    /// Where the next listing goes on; None: this was all.
    pub next: Option<After>,
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

    let mut listing = Listing::default();
    let mut last: Option<After> = None;
    let mut count = 0;
    let visible = |entry: &&Listed| entry.object.is_some() && bucket.shows(entry.incarnation);
    for entry in newest.into_values().filter(visible) {
        let group = common_prefix(&entry.key, query);
        let listed_already =
            matches!((&last, group), (Some(After::Prefix(last)), Some(group)) if last == group);
        if listed_already {
            continue;
        }
        if count == query.limit {
            listing.next = last;
            return listing;
        }
        count += 1;
        match group {
            Some(group) => {
                listing.common_prefixes.push(group.to_owned());
                last = Some(After::Prefix(group.to_owned()));
            }
            None => {
                listing.objects.push(entry.clone());
                last = Some(After::Key(entry.key.clone()));
            }
        }
    }
    listing.next = horizon.map(|horizon| match last {
        Some(After::Prefix(group)) if horizon.starts_with(&group) => After::Prefix(group),
        _ => After::Key(horizon.to_owned()),
    });
    listing
}

fn common_prefix<'a>(key: &'a str, query: &Query) -> Option<&'a str> {
    let delimiter = query.delimiter.as_deref().filter(|d| !d.is_empty())?;
    let rest = &key[query.prefix.len()..];
    let at = rest.find(delimiter)?;
    Some(&key[..query.prefix.len() + at + delimiter.len()])
}

/// Keys on which some page differs from the newest: replicas to mend.
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

    fn entry(key: &str, time: u64, there: bool) -> Listed {
        Listed {
            key: key.into(),
            version: Version::of(time, 0),
            incarnation: Version::of(1, 0),
            object: there.then_some(Summary {
                size: 1,
                md5: [0; 16],
            }),
        }
    }

    fn page(entries: &[(&str, u64, bool)], end: Option<&str>) -> Page {
        let entries = entries
            .iter()
            .map(|&(key, time, there)| entry(key, time, there));
        Page {
            entries: entries.collect(),
            end: end.map(str::to_owned),
        }
    }

    fn bucket() -> BucketState {
        BucketState {
            created: Version::of(1, 0),
            deleted: Version::ZERO,
        }
    }

    fn query(limit: usize, delimiter: Option<&str>) -> Query {
        Query {
            prefix: String::new(),
            delimiter: delimiter.map(str::to_owned),
            after: After::Start,
            limit,
        }
    }

    fn keys(listing: &Listing) -> Vec<&str> {
        listing.objects.iter().map(|o| o.key.as_str()).collect()
    }

    #[test]
    fn a_tombstone_newer_than_another_replicas_value_hides_it() {
        let fresh = page(&[("a", 5, false), ("b", 2, true)], None);
        let stale = page(&[("a", 3, true), ("b", 2, true)], None);
        let listing = merge(&[stale, fresh], bucket(), &query(10, None));
        assert_eq!(keys(&listing), ["b"]);
        assert_eq!(listing.next, None);
    }

    #[test]
    fn a_key_that_only_one_replica_has_is_listed() {
        let has = page(&[("a", 5, true)], None);
        let lacks = page(&[], None);
        assert_eq!(
            keys(&merge(&[lacks, has], bucket(), &query(10, None))),
            ["a"]
        );
    }

    #[test]
    fn nothing_beyond_the_end_of_a_cut_page_is_believed() {
        let cut = page(&[("a", 2, true), ("b", 2, true)], Some("b"));
        let whole = page(&[("a", 2, true), ("b", 2, true), ("d", 2, true)], None);
        let listing = merge(&[cut, whole], bucket(), &query(10, None));
        assert_eq!(keys(&listing), ["a", "b"]);
        assert_eq!(listing.next, Some(After::Key("b".into())));
    }

    #[test]
    fn a_full_listing_with_nothing_left_is_not_truncated() {
        let both = page(&[("a", 2, true), ("b", 2, true)], None);
        assert_eq!(merge(&[both], bucket(), &query(2, None)).next, None);
    }

    #[test]
    fn keys_under_a_delimiter_are_one_common_prefix() {
        let entries = [
            ("a/1", 2, true),
            ("a/2", 2, true),
            ("b", 2, true),
            ("c/1", 2, true),
        ];
        let listing = merge(&[page(&entries, None)], bucket(), &query(10, Some("/")));
        assert_eq!(listing.common_prefixes, ["a/", "c/"]);
        assert_eq!(keys(&listing), ["b"]);
    }

    #[test]
    fn a_common_prefix_listed_once_is_not_listed_on_the_next_page() {
        let entries = [("a/1", 2, true), ("a/2", 2, true), ("b", 2, true)];
        let first = merge(&[page(&entries, None)], bucket(), &query(1, Some("/")));
        assert_eq!(first.next, Some(After::Prefix("a/".into())));
        let cut = page(&entries[..1], Some("a/1"));
        let first = merge(&[cut], bucket(), &query(1, Some("/")));
        assert_eq!(first.next, Some(After::Prefix("a/".into())));
    }

    #[test]
    fn a_common_prefix_of_which_only_tombstones_were_seen_is_looked_at_again() {
        let cut = page(&[("a/1", 2, false)], Some("a/1"));
        let listing = merge(&[cut], bucket(), &query(1, Some("/")));
        assert!(listing.common_prefixes.is_empty());
        assert_eq!(listing.next, Some(After::Key("a/1".into())));
    }

    #[test]
    fn differing_names_old_values_and_holes_but_not_what_a_cut_page_left_out() {
        let full = page(
            &[
                ("a", 2, true),
                ("b", 3, true),
                ("c", 2, true),
                ("z", 2, true),
            ],
            None,
        );
        let cut = page(&[("a", 2, true), ("b", 2, true)], Some("c"));
        assert_eq!(differing(&[full, cut]), ["b", "c"]);
    }
}
