//! The program's other two modes, `wire rows` and `wire watch`, and the record's requests, as far
//! as they need no network.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn wire(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_wire"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_is_no_record_has_no_rows() {
    for file in ["/nonexistent", "/dev/null", "/proc/self/exe"] {
        let done = wire(&["rows", file], "");
        assert!(!done.status.success());
        assert!(text(&done.stderr).contains(file), "{}", text(&done.stderr));
        assert!(done.stdout.is_empty());
    }
    assert_eq!(wire(&["rows"], "").status.code(), Some(2));
}

#[test]
fn a_record_needs_links_and_something_to_record() {
    let settings = r#"{"file":"/nonexistent","limit_bytes":1000000,"snap_bytes":256,"names":[]}"#;
    let requests = format!(
        "{{\"op\":\"capture\",\"capture\":{settings},\"directions\":[]}}\n\
         {{\"op\":\"start\",\"seed\":1,\"links\":[]}}\n\
         {{\"op\":\"capture_status\"}}\n\
         {{\"op\":\"capture_stop\"}}\n\
         {{\"op\":\"capture\",\"capture\":{settings},\"directions\":[{{\"link\":0,\"direction\":\"ab\"}}]}}\n\
         {{\"op\":\"capture\",\"capture\":{settings},\"directions\":[]}}\n"
    );
    let done = wire(&[], &requests);
    assert!(done.status.success());
    let answers = text(&done.stdout);
    let expected = [
        "not started yet",
        "\"ok\":true",
        "no packets are being recorded",
        "no packets are being recorded",
        "there are 0 names for 1 directions",
        "/nonexistent",
    ];
    for (answer, expected) in answers.lines().zip(expected) {
        assert!(answer.contains(expected), "{answer}");
    }
    assert_eq!(answers.lines().count(), expected.len());
}

#[test]
fn the_watcher_answers_every_line() {
    let requests = "{}\nnonsense\n{\"op\":\"capture_status\"}\n\
        {\"op\":\"watch\",\"capture\":{\"file\":\"/nonexistent\",\"limit_bytes\":1000000,\
        \"snap_bytes\":256,\"names\":[]},\"routers\":[],\"longest_ns\":1}\n";
    let done = wire(&["watch"], requests);
    assert!(done.status.success());
    let answers = text(&done.stdout);
    let expected = [
        "not a request",
        "not a request",
        "not watching",
        "/nonexistent",
    ];
    for (answer, expected) in answers.lines().zip(expected) {
        assert!(answer.contains(expected), "{answer}");
    }
    assert_eq!(answers.lines().count(), expected.len());
}
