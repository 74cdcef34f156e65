//! What a server sees of it: each planned request exactly once, and nothing else.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Probe, Server, assert_ok};
use serde_json::{Value, json};

fn header<'a>(request: &'a Value, name: &str) -> Option<&'a str> {
    let headers = request["headers"].as_array().unwrap();
    let mut found = headers
        .iter()
        .filter(|h| h[0].as_str().unwrap().eq_ignore_ascii_case(name));
    let value = found.next().map(|h| h[1].as_str().unwrap());
    assert!(found.next().is_none(), "{name} is there twice: {request}");
    value
}

#[test]
fn a_request_is_sent_once_whatever_comes_of_it() {
    let answers = [
        "reset",
        "close",
        "garbage",
        "status:503:SlowDown",
        "never",
        "ok",
    ];
    let server = Server::answering(&answers);
    let mut probe = Probe::of(&server);
    for answer in answers {
        let deadline_ms = if answer == "never" { 200 } else { 10_000 };
        let record = probe.ask(
            "PutObject",
            json!({"object_bytes": 100, "body_seed": 5, "deadline_ms": deadline_ms}),
        );
        assert_eq!(
            record["outcome"],
            if answer == "ok" { "ok" } else { "unknown" },
            "{answer}"
        );
    }
    assert_eq!(server.journal().len(), answers.len());
}

#[test]
fn requests_are_what_s3_expects_and_ask_for_no_continue() {
    let server = Server::answering(&["ok"]);
    let mut probe = Probe::of(&server);
    probe.put(100_000);
    probe.get();
    probe.ask(
        "ListObjects",
        json!({"prefix": "a/b c", "bucket": "bucket"}),
    );
    probe.ask("RemoveObject", json!({"key": "d/é"}));
    let port = server.port;
    let journal = server.journal();
    let targets: Vec<&str> = journal
        .iter()
        .map(|r| r["target"].as_str().unwrap())
        .collect();
    assert_eq!(
        targets,
        [
            "/bucket/key",
            "/bucket/key",
            "/bucket?list-type=2&prefix=a%2Fb%20c",
            "/bucket/d/%C3%A9"
        ]
    );
    for request in &journal {
        assert_eq!(header(request, "expect"), None);
        assert_eq!(header(request, "connection"), None);
        assert_eq!(
            header(request, "host"),
            Some(format!("127.0.0.1:{port}").as_str())
        );
        assert_eq!(
            header(request, "x-amz-content-sha256"),
            request["body_sha256"].as_str(),
            "the hash is the body's, not UNSIGNED-PAYLOAD"
        );
        let authorization = header(request, "authorization").unwrap();
        assert!(
            authorization.starts_with("AWS4-HMAC-SHA256 Credential=ACCESS/")
                && authorization.contains("/garage/s3/aws4_request, SignedHeaders="),
            "{authorization}"
        );
    }
    assert_eq!(journal[0]["body_bytes"], 100_000);
    assert_eq!(header(&journal[0], "content-length"), Some("100000"));
}

#[test]
fn on_request_each_one_has_a_connection_of_its_own() {
    let server = Server::answering(&["ok"]);
    let mut probe = Probe::with(server.port, json!({"connection": "new"}));
    for _ in 0..3 {
        let record = probe.get();
        assert_ok(&record);
        assert_eq!(record["new_connection"], true);
        assert!(record["connect_ns"].as_u64() > Some(0));
    }
    let journal = server.journal();
    let connections: Vec<&Value> = journal
        .iter()
        .map(|request| &request["connection"])
        .collect();
    assert_eq!(connections, [&json!(0), &json!(1), &json!(2)]);
    assert!(
        journal
            .iter()
            .all(|request| header(request, "connection") == Some("close"))
    );
}

/// Waits until the kernel has a connection to this port on loopback that its other end has closed
/// (CLOSE_WAIT, 8 in proc_net_tcp).
fn until_fin_came(port: u16) {
    let closed = || {
        let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
        connections.lines().any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields[2].ends_with(&format!(":{port:04X}")) && fields[3] == "08"
        })
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !closed() {
        assert!(Instant::now() < deadline, "its FIN does not come");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_kept_connection_that_the_server_closed_is_replaced_before_anything_is_sent() {
    let server = Server::answering(&["close-after", "ok"]);
    let mut probe = Probe::of(&server);
    assert_ok(&probe.get());
    until_fin_came(server.port);
    let record = probe.put(10);
    assert_ok(&record);
    assert_eq!(record["new_connection"], true);
    assert!(record["connect_ns"].as_u64() > Some(0), "{record}");
    let journal = server.journal();
    assert_eq!(journal.len(), 2, "sent once, on the second connection");
    assert_eq!(journal[1]["connection"], 1);
}

#[test]
fn a_server_that_says_close_is_believed() {
    // And bytes behind a response are never taken for the next one.
    for answer in ["connection-close", "until-close", "stray"] {
        let server = Server::answering(&[answer, "ok"]);
        let mut probe = Probe::of(&server);
        assert_ok(&probe.get());
        let record = probe.get();
        assert_ok(&record);
        assert_eq!(record["new_connection"], true, "{answer}");
    }
}
