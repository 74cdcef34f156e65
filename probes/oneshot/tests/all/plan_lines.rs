//! The process as its driver sees it: lines in, lines out, an exit code.

use crate::common::{Probe, Server, refused, rows, run, with};
use serde_json::json;

fn header(port: u16) -> String {
    format!(
        r#"{{"host":"127.0.0.1","port":{port},"region":"r","access_key":"a","secret_key":"s","deadline_ms":10000}}"#
    )
}

#[test]
fn a_bad_line_ends_the_plan_with_its_number_after_the_lines_before_it_were_done() {
    let server = Server::answering(&["ok"]);
    let good = r#"{"seq":0,"phase":"measure","endpoint":"ListBuckets"}"#;
    let output = run(
        &["s3"],
        &format!("{}\n{good}\n{{\"seq\":1}}\n{good}\n", header(server.port)),
    );
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("oneshot: plan line 3: "), "{error}");
    assert!(error.contains("missing field `phase`"), "{error}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    assert_eq!(server.journal().len(), 1);
}

#[test]
fn every_mistake_names_its_line_and_what_is_allowed() {
    for [endpoint, fields, expected] in rows(
        r#"
        ListBuckets | {"colour": 1} | unknown field `colour`
        Frob | {} | unknown endpoint `Frob`, expected one of ListBuckets, ListObjects
        ListBuckets | {"phase": "later"} | expected one of `prepare`, `warmup`, `measure`
        GetObject | {"bucket": "b"} | GetObject needs `key`
        PutObject | {"bucket": "b", "key": "k", "object_bytes": 1} | PutObject needs `body_seed`
        ListBuckets | {"bucket": "b"} | `bucket` means nothing to ListBuckets
        RemoveObject | {"bucket": "b", "key": "k", "object_bytes": 1} | `object_bytes` means nothing
        GetObject | {"bucket": "", "key": "k"} | `bucket` is empty
        GetObject | {"bucket": "b", "key": "k", "body_seed": 1} | without `object_bytes`
        PutObject | {"bucket": "b", "key": "k", "body_seed": 1, "object_bytes": 5368709121} | at most
        ListBuckets | {"deadline_ms": 0} | `deadline_ms` is 0
        ListBuckets | {"seq": -1} | invalid value
        "#,
    ) {
        let line = json!({"seq": 0, "phase": "measure", "endpoint": endpoint});
        let line = with(line, serde_json::from_str(fields).unwrap());
        let error = refused("s3", &format!("{}\n\n{line}\n", header(1)));
        assert!(error.starts_with("oneshot: plan line 3: "), "{error}");
        assert!(error.contains(expected), "{line} gave {error}");
    }
}

#[test]
fn a_header_says_its_own_mistakes() {
    for [changes, expected] in rows(
        r#"
        {"host": "not a host"} | host "not a host"
        {"deadline_ms": 0} | `deadline_ms` is 0
        {"connection": "maybe"} | expected `keep-alive` or `new`
        {"retries": 3} | unknown field `retries`
        {"region": "eu west"} | must be printable ASCII
        {"access_key": "a\r\nx: y"} | must be printable ASCII
        {"access_key": ""} | must be printable ASCII
        "#,
    ) {
        let header = serde_json::from_str(&header(1)).unwrap();
        let line = with(header, serde_json::from_str(changes).unwrap());
        let error = refused("s3", &line.to_string());
        assert!(error.starts_with("oneshot: plan line 1: "), "{error}");
        assert!(error.contains(expected), "{line} gave {error}");
    }
    assert!(refused("s3", "").contains("plan line 1: there is no header"));
    assert!(refused("s3", "{}").contains("missing field"));
}

#[test]
fn an_empty_plan_is_done_at_once() {
    let output = run(&["s3"], &header(1));
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_command_line_that_is_wrong_ends_with_2() {
    for arguments in [
        &[][..],
        &["gopher"],
        &["s3", "--retries", "3"],
        &["body", "--seed", "x"],
    ] {
        assert_eq!(run(arguments, "").status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn the_help_of_load_names_the_protocols_on_one_line() {
    let help = String::from_utf8(run(&["load", "--help"], "").stdout).unwrap();
    assert!(help.contains("header [possible values: s3, "), "{help}");
}

#[test]
fn body_writes_the_bytes_that_are_put() {
    let server = Server::answering(&["ok"]);
    let record = Probe::of(&server).put(100_003);
    let body = run(&["body", "--seed", "5", "--bytes", "100003"], "").stdout;
    assert_eq!(body.len(), 100_003);
    let sha256 = oneshot::body::sha256_of([body.as_slice()]);
    assert_eq!(record["sha256"], sha256.as_str());
    assert_eq!(server.journal()[0]["body_sha256"], sha256.as_str());
}
