use std::fs;
use std::path::PathBuf;

use super::*;
use crate::testing::{Scratch, bucket, name, record};

/// A replica with a bucket, in a directory of its own.
struct Fixture {
    scratch: Scratch,
    store: Option<Store>,
}

impl Fixture {
    fn new() -> Self {
        let (scratch, store) = (Scratch::new(), None);
        let mut fixture = Self { scratch, store };
        fixture.open_again();
        fixture.store().merge_bucket("b", bucket(1, 0)).unwrap();
        fixture
    }

    fn open_again(&mut self) {
        self.store = None;
        self.store = Some(Store::open(self.scratch.path(), Flags::default()).unwrap());
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    /// Puts a body or, with None, a tombstone.
    fn write(&self, key: &str, time: u64, body: Option<&str>) {
        let body = body.map(str::as_bytes);
        let record = record(time, body);
        let written = self
            .store()
            .write(&name(key), record, body.unwrap_or_default());
        written.unwrap();
    }

    fn body(&self, key: &str) -> Option<Bytes> {
        let (record, body) = self.store().read(&name(key)).unwrap()?;
        record.object.map(|_| body)
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.scratch.path().join("entries")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn last_file(&self) -> PathBuf {
        self.files().into_iter().max().unwrap()
    }
}

#[test]
fn what_was_written_is_there_after_opening_again_and_what_was_cut_short_is_thrown_away() {
    let mut replica = Fixture::new();
    replica.write("kept", 2, Some("body"));
    replica.write("removed", 3, Some("gone"));
    replica.write("removed", 4, None);
    replica.write("torn", 5, Some("a longer body"));
    let torn = replica.last_file();
    let len = fs::metadata(&torn).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&torn).unwrap();
    file.set_len(len - 1).unwrap();
    replica.open_again();
    assert!(replica.store().bucket("b").alive());
    assert_eq!(replica.body("kept").unwrap(), "body");
    assert_eq!(replica.body("removed"), None);
    assert_eq!(replica.body("torn"), None);
    assert!(!torn.exists());
    assert_eq!(replica.store().newest_version(), Version::of(4, 0));
    assert_eq!(replica.store().object_count(), 1);
}

#[test]
fn files_that_are_no_replicas_stay_as_they_are() {
    let mut replica = Fixture::new();
    let root = replica.scratch.path().to_owned();
    replica.store = None;
    let theirs = [root.join("entries/cafe"), root.join("lock")];
    for file in &theirs {
        fs::write(file, "mine").unwrap();
    }
    replica.open_again();
    for file in &theirs {
        assert_eq!(fs::read_to_string(file).unwrap(), "mine");
    }
}

#[test]
fn the_newest_version_wins_in_whatever_order_they_come() {
    let replica = Fixture::new();
    for (key, newest) in [("put", Some("newest")), ("removed", None)] {
        replica.write(key, 3, newest);
        replica.write(key, 2, Some("older"));
        assert_eq!(replica.body(key), newest.map(Bytes::from));
    }
}

#[test]
fn a_replaced_body_frees_its_space() {
    let replica = Fixture::new();
    for time in 2..10 {
        replica.write("k", time, Some("body"));
    }
    let one_bucket_and_one_object = 2;
    assert_eq!(replica.files().len(), one_bucket_and_one_object);
}

#[test]
fn a_flipped_bit_in_a_body_is_an_error_and_not_an_answer() {
    let replica = Fixture::new();
    replica.write("k", 2, Some("body"));
    let file = replica.last_file();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let error = replica.store().read(&name("k")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_replica_belongs_to_one_process() {
    let replica = Fixture::new();
    let error = Store::open(replica.scratch.path(), Flags::default()).err();
    assert!(error.unwrap().to_string().contains("another process"));
}

#[test]
fn readers_never_see_a_hole_while_a_value_is_replaced() {
    let replica = Fixture::new();
    replica.write("k", 2, Some("0"));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| (0..2000).all(|_| replica.body("k").is_some()));
        for time in 3..500 {
            replica.write("k", time, Some(&time.to_string()));
        }
        assert!(reader.join().unwrap());
    });
}

#[test]
fn a_page_counts_no_tombstones_ends_with_its_prefix_and_goes_on_after_a_key() {
    let replica = Fixture::new();
    for key in ["a", "b", "c", "p/1", "p/2", "q"] {
        replica.write(key, 2, Some(""));
    }
    replica.write("b", 3, None);
    let page = |prefix: &str, after: Option<&str>, limit| {
        let query = Query {
            prefix: prefix.into(),
            after: after.map(str::to_owned),
            limit,
        };
        let page = replica.store().page("b", &query);
        let keys: Vec<_> = page.entries.into_iter().map(|entry| entry.key).collect();
        (keys.join(" "), page.end)
    };
    assert_eq!(page("", None, 2), ("a b c".into(), Some("c".into())));
    assert_eq!(page("p/", None, 2), ("p/1 p/2".into(), None));
    assert_eq!(page("", Some("p/1"), 9), ("p/2 q".into(), None));
    assert_eq!(page("p/", Some("a"), 9), ("p/1 p/2".into(), None));
}
