use std::fs;
use std::path::PathBuf;

use super::*;
use crate::testing::Scratch;

fn name(key: &str) -> ObjectName {
    ObjectName {
        bucket: "b".into(),
        key: key.into(),
    }
}

fn at(time: u64) -> Version {
    Version::of(time, 0)
}

fn put(store: &Store, key: &str, time: u64, body: &[u8]) {
    let object = Some(Meta {
        size: body.len() as u64,
        md5: [0; 16],
        crc32: crc32(body),
        content_type: None,
        user: vec![],
    });
    let record = Record {
        version: at(time),
        incarnation: at(1),
        object,
    };
    store.write(&name(key), record, body).unwrap();
}

fn remove(store: &Store, key: &str, time: u64) {
    let record = Record {
        version: at(time),
        incarnation: at(1),
        object: None,
    };
    store.write(&name(key), record, &[]).unwrap();
}

fn create(store: &Store) {
    let state = BucketState {
        created: at(1),
        deleted: Version::ZERO,
    };
    store.merge_bucket("b", state).unwrap();
}

fn body(store: &Store, key: &str) -> Option<Bytes> {
    let (record, body) = store.read(&name(key)).unwrap()?;
    record.object.map(|_| body)
}

fn entry_files(scratch: &Scratch) -> Vec<PathBuf> {
    let entries = fs::read_dir(scratch.path().join("entries")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn what_was_written_is_there_after_opening_again() {
    let scratch = Scratch::new();
    {
        let store = Store::open(scratch.path()).unwrap();
        create(&store);
        put(&store, "kept", 2, b"body");
        put(&store, "removed", 3, b"gone");
        remove(&store, "removed", 4);
    }
    let store = Store::open(scratch.path()).unwrap();
    assert!(store.bucket("b").alive());
    assert_eq!(body(&store, "kept").unwrap(), "body");
    assert_eq!(body(&store, "removed"), None);
    assert_eq!(store.newest_version(), at(4));
    assert_eq!(store.object_count(), 1);
}

#[test]
fn the_newest_version_wins_in_whatever_order_they_come() {
    let scratch = Scratch::new();
    let store = Store::open(scratch.path()).unwrap();
    create(&store);
    put(&store, "k", 3, b"newest");
    put(&store, "k", 2, b"older");
    assert_eq!(body(&store, "k").unwrap(), "newest");
}

#[test]
fn a_tombstone_is_not_undone_by_an_older_value() {
    let scratch = Scratch::new();
    let store = Store::open(scratch.path()).unwrap();
    create(&store);
    remove(&store, "k", 3);
    put(&store, "k", 2, b"late");
    assert_eq!(body(&store, "k"), None);
}

#[test]
fn a_replaced_body_frees_its_space() {
    let scratch = Scratch::new();
    let store = Store::open(scratch.path()).unwrap();
    create(&store);
    for time in 2..10 {
        put(&store, "k", time, b"body");
    }
    let one_bucket_and_one_object = 2;
    assert_eq!(entry_files(&scratch).len(), one_bucket_and_one_object);
}

#[test]
fn a_file_cut_short_was_never_acknowledged_and_is_thrown_away() {
    let scratch = Scratch::new();
    {
        let store = Store::open(scratch.path()).unwrap();
        create(&store);
        put(&store, "whole", 2, b"body");
        put(&store, "torn", 3, b"a longer body");
    }
    let torn = entry_files(&scratch).into_iter().max().unwrap();
    let len = fs::metadata(&torn).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&torn).unwrap();
    file.set_len(len - 1).unwrap();

    let store = Store::open(scratch.path()).unwrap();
    assert_eq!(body(&store, "torn"), None);
    assert_eq!(body(&store, "whole").unwrap(), "body");
    assert!(!torn.exists());
}

#[test]
fn a_flipped_bit_in_a_body_is_an_error_and_not_an_answer() {
    let scratch = Scratch::new();
    let store = Store::open(scratch.path()).unwrap();
    create(&store);
    put(&store, "k", 2, b"body");
    let file = entry_files(&scratch).into_iter().max().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let error = store.read(&name("k")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_replica_belongs_to_one_process() {
    let scratch = Scratch::new();
    let _store = Store::open(scratch.path()).unwrap();
    let error = Store::open(scratch.path()).err().unwrap();
    assert!(error.to_string().contains("another process"));
}

#[test]
fn readers_never_see_a_hole_while_a_value_is_replaced() {
    let scratch = Scratch::new();
    let store = Store::open(scratch.path()).unwrap();
    create(&store);
    put(&store, "k", 2, b"0");
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| (0..2000).all(|_| body(&store, "k").is_some()));
        for time in 3..500 {
            put(&store, "k", time, time.to_string().as_bytes());
        }
        assert!(reader.join().unwrap());
    });
}

fn query(prefix: &str, after: After, limit: usize) -> Query {
    Query {
        prefix: prefix.into(),
        delimiter: None,
        after,
        limit,
    }
}

fn keys(page: &Page) -> Vec<&str> {
    page.entries
        .iter()
        .map(|entry| entry.key.as_str())
        .collect()
}

#[test]
fn a_page_holds_tombstones_but_does_not_count_them() {
    let scratch = Scratch::new();
    let store = Store::open(scratch.path()).unwrap();
    create(&store);
    for key in ["a", "b", "c", "d"] {
        put(&store, key, 2, b"");
    }
    remove(&store, "b", 3);
    let page = store.page("b", &query("", After::Start, 2));
    assert_eq!(keys(&page), ["a", "b", "c"]);
    assert_eq!(page.end.as_deref(), Some("c"));
}

#[test]
fn a_page_ends_where_the_prefix_ends() {
    let scratch = Scratch::new();
    let store = Store::open(scratch.path()).unwrap();
    create(&store);
    for key in ["a", "p/1", "p/2", "q"] {
        put(&store, key, 2, b"");
    }
    let page = store.page("b", &query("p/", After::Start, 2));
    assert_eq!(keys(&page), ["p/1", "p/2"]);
    assert_eq!(page.end, None);
}

#[test]
fn a_page_goes_on_after_a_key_or_past_a_common_prefix() {
    let scratch = Scratch::new();
    let store = Store::open(scratch.path()).unwrap();
    create(&store);
    for key in ["a", "p/1", "p/2", "q"] {
        put(&store, key, 2, b"");
    }
    let after_key = store.page("b", &query("", After::Key("p/1".into()), 9));
    assert_eq!(keys(&after_key), ["p/2", "q"]);
    let after_prefix = store.page("b", &query("", After::Prefix("p/".into()), 9));
    assert_eq!(keys(&after_prefix), ["q"]);
}
