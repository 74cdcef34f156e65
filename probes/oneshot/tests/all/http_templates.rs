//! `oneshot http`: what a template sends, and what comes of it.

use serde_json::{Value, json};

use crate::common::{Probe, Server, assert_ok, assert_outcome, assert_phases, refused, rows, with};

fn probe(server: &Server, changes: &str) -> Probe {
    let header = json!({"host": "127.0.0.1", "port": server.port});
    let changes = serde_json::from_str(changes).unwrap();
    Probe::speaking("http", with(header, changes))
}

fn get(probe: &mut Probe, bytes: u64) -> Value {
    let request = json!({"method": "GET", "path": "/bucket/key"});
    let object = json!({"request": request, "response_object": "body", "object_bytes": bytes, "body_seed": 0});
    probe.call("Get", object)
}

#[test]
fn an_object_that_is_put_comes_back_and_its_head_announces_it() {
    let server = Server::with(&["--memory"], &[]);
    let mut probe = probe(
        &server,
        r#"{"headers": {"x-who": "wanlat", "x-n": "{seq}"}}"#,
    );
    let sized = |request: Value, response: Option<&str>, bytes: u64| json!({"request": request, "response_object": response, "key": "0a/{b}", "object_bytes": bytes, "body_seed": 9});
    let bucket = json!({"request": {"method": "PUT", "path": "/bucket"}});
    assert_ok(&probe.call("Make", bucket));
    for bytes in [3000, 9 << 20] {
        let request =
            json!({"method": "PUT", "path": "/bucket/k", "body": "{body}", "expect": [200]});
        let put = probe.call("Write", sized(request, None, bytes));
        assert_ok(&put);
        assert_eq!(
            (&put["object_bytes"], &put["endpoint"]),
            (&bytes.into(), &"Write".into())
        );
        let request = json!({"method": "GET", "path": "/bucket/k"});
        let read = probe.call("Read", sized(request, Some("body"), bytes));
        assert_ok(&read);
        assert_eq!(read["sha256"], put["sha256"]);
        assert_eq!(read["object_bytes"], bytes);
        let head = json!({"method": "HEAD", "path": "/bucket/k"});
        assert_ok(&probe.call("Head", sized(head.clone(), Some("content-length"), bytes)));
        let wrong = probe.call("Head", sized(head, Some("content-length"), 7));
        assert_outcome(
            &wrong,
            "fail",
            &format!("length mismatch: {bytes} bytes, not 7"),
        );
        assert_eq!(wrong["new_connection"], false);
    }
    assert_eq!(probe.finish(), 0);
    let journal = server.journal();
    assert_eq!(journal.len(), 9);
    let headers = journal[1]["headers"].to_string();
    assert!(
        headers.contains("wanlat") && headers.contains("x-n"),
        "{headers}"
    );
}

#[test]
fn an_answer_that_lacks_a_text_is_wrong_whatever_its_status_is() {
    for [method, text, outcome] in rows(
        "
        GET | NoSuchKey | ok
        PUT | NoSuchKey | ok
        GET | of rows | fail
        PUT | of rows | unknown
        ",
    ) {
        let server = Server::answering(&["status:404:NoSuchKey"]);
        let mut request = json!({"method": method, "path": "/bucket/key", "expect": [404]});
        request["contains"] = text.into();
        let done = probe(&server, "{}").call("Ask", json!({"request": request}));
        assert_eq!(done["outcome"], outcome, "{done}");
        let error = done["error"].as_str().unwrap_or_default();
        let lacks = format!("the answer does not contain {text:?}: <");
        assert_eq!(error.starts_with(&lacks), outcome != "ok", "{done}");
    }
}

#[test]
fn what_comes_of_an_answer() {
    for [answer, method, expect, outcome, error] in rows(
        "
        ok | GET | [] | ok |
        chunked | GET | [200] | ok |
        wrong-body | GET | [] | fail | checksum mismatch
        ok | GET | [206] | fail | http 200, which is not expected
        ok | PUT | [201] | unknown | http 200, which is not expected
        status:404:NoSuchKey | GET | [] | fail | http 404
        status:404:NoSuchKey | DELETE | [204, 404] | ok |
        status:503:SlowDown | GET | [] | unknown | http 503
        redirect:307:http://192.0.2.1/b/k | GET | [] | fail | http 307 to http://192.0.2.1/b/k
        redirect:303:http://192.0.2.1/b/k | POST | [] | unknown | http 303 to http://192.0.2.1/b/k
        truncate | GET | [] | unknown | truncated response
        close | GET | [] | unknown | closed (first byte)
        ",
    ) {
        let server = Server::answering(&[answer]);
        let expect: Value = serde_json::from_str(expect).unwrap();
        let request = json!({"method": method, "path": "/bucket/key", "expect": expect});
        let object = json!({"response_object": "body", "object_bytes": 1024, "body_seed": 0});
        let mut fields = if method == "GET" { object } else { json!({}) };
        fields["request"] = request;
        let record = probe(&server, "{}").call("It", fields);
        match outcome {
            "ok" => assert_ok(&record),
            _ => assert_outcome(&record, outcome, error),
        }
    }
}

#[test]
fn a_write_that_is_answered_with_another_object_may_have_been_executed() {
    for (method, length, outcome) in [("HEAD", 1024, "fail"), ("PUT", 0, "unknown")] {
        let server = Server::answering(&["ok"]);
        let mut fields = json!({"response_object": "content-length", "object_bytes": 1000});
        fields["request"] = json!({"method": method, "path": "/bucket/key"});
        let record = probe(&server, "{}").call("It", fields);
        let told = format!("length mismatch: {length} bytes, not 1000");
        assert_outcome(&record, outcome, &told);
    }
}

#[test]
fn a_connection_is_kept_or_made_for_each_request_and_a_deadline_holds() {
    let server = Server::answering(&["ok"]);
    let mut kept = probe(&server, "{}");
    assert_phases(|| get(&mut kept, 1024));
    let mut fresh = probe(&server, r#"{"connection": "new"}"#);
    for _ in 0..3 {
        assert_eq!(get(&mut fresh, 1024)["new_connection"], true);
    }
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let header = json!({"host": "127.0.0.1", "port": port, "deadline_ms": 50});
    let late = get(&mut Probe::speaking("http", header), 1);
    assert_outcome(&late, "unknown", "timeout (first byte)");
    assert!(late["elapsed_ns"].as_u64() >= Some(50_000_000));
}

#[test]
fn a_template_that_makes_no_request_says_what_is_wrong() {
    for [request, fields, expected] in rows(
        r#"
        {"method": "GET", "path": "a"} | {} | begins with a slash
        {"method": "GET", "path": "/{key}"} | {} | the line has none
        {"method": "get", "path": "/"} | {} | no method of HTTP
        {"method": "PUT", "path": "/", "body": "{body}"} | {} | no `object_bytes`
        {"method": "PUT", "path": "/", "body": "x", "json": 1} | {} | a `body` and `json`
        {"method": "GET", "path": "/", "headers": {"Content-Length": "1"}} | {} | the protocol's own
        {"method": "GET", "path": "/", "headers": {"a b": "1"}} | {} | is no header
        {"method": "GET", "path": "/", "colour": 1} | {} | unknown field `colour`
        {"method": "GET", "path": "/"} | {"response_object": "data"} | expected body or content-length
        {"method": "GET", "path": "/"} | {"bucket": "b"} | `bucket` means nothing
        "#,
    ) {
        let mut line = json!({"seq": 0, "phase": "measure", "endpoint": "It"});
        line["request"] = serde_json::from_str(request).unwrap();
        let line = with(line, serde_json::from_str(fields).unwrap());
        let header = r#"{"host":"127.0.0.1","port":9,"deadline_ms":1000}"#;
        let error = refused("http", &format!("{header}\n{line}\n"));
        assert!(error.starts_with("oneshot: plan line 2: "), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}
