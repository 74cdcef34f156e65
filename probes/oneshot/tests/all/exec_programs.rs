//! `oneshot exec`: what a program is told, what comes of its answers, and of its end.

use oneshot::body;
use serde_json::{Value, json};

use crate::common::{Probe, assert_ok, assert_outcome, refused, with};

/// Does what the `op` says; `echo` answers with the body that it was told.
const SCRIPT: &str = r#"
while read -r line; do
    case $line in
    *'"op":"nothing"'*) echo '{"ok":true}' ;;
    *'"op":"fail"'*) echo '{"fail":"no room"}' ;;
    *'"op":"gone"'*) echo '{"not_found":"0aff"}' ;;
    *'"op":"doubt"'*) echo '{"unknown":"the leader is gone"}' ;;
    *'"op":"slow"'*) sleep 60 ;;
    *'"op":"late"'*) printf '{"ok":'; sleep 0.2; echo 'true}' ;;
    *'"op":"last"'*) sleep 0.2; exit 3 ;;
    *'"op":"die"'*) echo 'one'; echo 'out of cheese' >&2; echo >&2; exit 3 ;;
    *'"op":"kill"'*) kill -9 $$ ;;
    *'"op":"noise"'*) echo 'hello' ;;
    *'"op":"both"'*) echo '{"ok":true,"fail":"x"}' ;;
    *'"op":"two"'*) printf '{"ok":true}\n{"ok":true}\n' ;;
    *'"op":"tell"'*) printf '%s\n' "$line" >&2; exit 0 ;;
    *'"op":"pid"'*) echo "{\"fail\":\"$$\"}" ;;
    *'"op":"hash"'*) hash=${line#*'"hash":"'}; echo "{\"ok\":true,\"sha256\":\"${hash%%'"'*}\"}" ;;
    *'"op":"echo"'*) body=${line#*'"data":"'}; echo "{\"ok\":true,\"body\":\"${body%%'"'*}\"}" ;;
    esac
done
"#;

fn probe(changes: Value) -> Probe {
    let header = json!({"command": ["sh", "-c", SCRIPT]});
    Probe::speaking("exec", with(header, changes))
}

fn pid(probe: &mut Probe) -> (String, bool) {
    let record = probe.call("pid", json!({}));
    let pid = record["error"].as_str().unwrap().to_owned();
    (pid, record["new_connection"].as_bool().unwrap())
}

#[test]
fn outcomes_are_what_the_program_says_and_what_is_no_answer_is_unknown() {
    let mut probe = probe(json!({}));
    let ok = probe.call("nothing", json!({}));
    assert_ok(&ok);
    assert_eq!(ok["new_connection"], true);
    let ns = |field: &str| ok[field].as_u64().unwrap();
    let phases = ["connect_ns", "sent_ns", "first_byte_ns", "total_ns"].map(ns);
    assert!(phases.is_sorted() && phases[0] == 0, "{ok}");
    assert_outcome(&probe.call("fail", json!({})), "fail", "no room");
    assert_outcome(&probe.call("gone", json!({})), "fail", "not found: 0aff");
    let doubt = probe.call("doubt", json!({}));
    assert_outcome(&doubt, "unknown", "the leader is gone");
    assert_eq!(doubt["new_connection"], false, "an answer like any other");
    let noise = probe.call("noise", json!({}));
    assert_outcome(&noise, "unknown", "malformed response: hello");
    let both = probe.call("both", json!({}));
    assert_eq!(both["new_connection"], true, "it was replaced");
    assert_eq!(both["outcome"], "unknown");
    let two = probe.call("two", json!({}));
    assert_outcome(
        &two,
        "unknown",
        "the program answered with more than one line",
    );
    assert_ok(&probe.call("nothing", json!({})));
    assert_eq!(probe.finish(), 0);
}

#[test]
fn a_program_that_dies_leaves_a_doubt_and_its_last_words_and_is_replaced() {
    let mut probe = probe(json!({}));
    let (first, is_new) = pid(&mut probe);
    assert!(is_new);
    assert_eq!(pid(&mut probe), (first.clone(), false));
    let died = probe.call(
        "tell",
        json!({"request": {"a": ["{seq}", "{key}"]}, "key": "0aff"}),
    );
    let told = r#"the program ended with exit code 0: {"a":[2,"0aff"],"op":"tell"}"#;
    assert_outcome(&died, "unknown", told);
    assert_eq!(died["total_ns"], Value::Null);
    let (second, is_new) = pid(&mut probe);
    assert!(is_new && second != first);
    let killed = probe.call("kill", json!({}));
    assert_outcome(&killed, "unknown", "the program was ended by signal 9");
    // What it said was no answer; that it ends after it is known before the next request.
    let noise = probe.call("die", json!({}));
    assert_outcome(&noise, "unknown", "malformed response: one");
    assert!(pid(&mut probe).1);
}

#[test]
fn a_deadline_holds_and_the_program_is_replaced() {
    let mut probe = probe(json!({"deadline_ms": 50}));
    assert_ok(&probe.call("nothing", json!({"deadline_ms": 20_000})));
    let late = probe.call("slow", json!({"deadline_ms": 60}));
    assert_outcome(&late, "unknown", "timeout (first byte)");
    assert!(late["elapsed_ns"].as_u64() >= Some(60_000_000));
    let next = probe.call("nothing", json!({"deadline_ms": 20_000}));
    assert_ok(&next);
    assert_eq!(next["new_connection"], true);
}

#[test]
fn a_program_whose_answer_is_late_is_asked_again_once_it_has_come() {
    let mut probe = probe(json!({}));
    let (first, _) = pid(&mut probe);
    let late = probe.call("late", json!({"deadline_ms": 50}));
    assert_outcome(&late, "unknown", "timeout (body)");
    let (second, is_new) = pid(&mut probe);
    assert!(is_new && second != first, "the first one owes an answer");
    assert_outcome(
        &probe.call("slow", json!({"deadline_ms": 1000})),
        "unknown",
        "timeout (first byte)",
    );
    assert_eq!(pid(&mut probe), (first.clone(), false));
    let ended = probe.call("last", json!({"deadline_ms": 50}));
    assert_outcome(&ended, "unknown", "timeout (first byte)");
    assert_outcome(
        &probe.call("slow", json!({"deadline_ms": 1000})),
        "unknown",
        "timeout (first byte)",
    );
    let (third, is_new) = pid(&mut probe);
    assert!(is_new && ![first, second].contains(&third), "it has ended");
}

#[test]
fn of_many_programs_that_are_late_few_are_kept() {
    let mut probe = probe(json!({}));
    let mut pids = Vec::new();
    for _ in 0..6 {
        pids.push(pid(&mut probe).0);
        probe.call("slow", json!({"deadline_ms": 20}));
    }
    let is_there = |pid: &String| std::path::Path::new(&format!("/proc/{pid}")).exists();
    let there: Vec<bool> = pids.iter().map(is_there).collect();
    assert_eq!(there, [false, false, true, true, true, true]);
    assert_eq!(probe.finish(), 0);
    assert!(!pids.iter().any(is_there));
}

#[test]
fn a_program_can_be_started_for_each_request() {
    let mut probe = probe(json!({"connection": "new"}));
    let (first, second) = (pid(&mut probe), pid(&mut probe));
    assert!(first.1 && second.1 && first.0 != second.0);
}

#[test]
fn an_object_is_told_in_base64_and_checked_by_its_bytes_or_its_hash() {
    let mut probe = probe(json!({}));
    let object = |bytes: u64, seed: u64, request: Value, response: &str| json!({"object_bytes": bytes, "body_seed": seed, "request": request, "response_object": response});
    // More than a pipe holds, so that it goes in pieces.
    for bytes in [1000, 300_000] {
        let echo = probe.call("echo", object(bytes, 5, json!({"data": "{body}"}), "body"));
        assert_ok(&echo);
        assert_eq!(
            (&echo["object_bytes"], &echo["sha256"]),
            (&bytes.into(), &body::sha256(5, bytes).into())
        );
    }
    let wrong = probe.call("echo", object(3, 5, json!({"data": "AAAA"}), "body"));
    assert_outcome(&wrong, "fail", "checksum mismatch");
    let short = probe.call("echo", object(4, 5, json!({"data": "AAAA"}), "body"));
    assert_outcome(&short, "fail", "length mismatch: 3 bytes, not 4");
    let hash = body::sha256(5, 10);
    let right = probe.call("hash", object(10, 5, json!({"hash": hash}), "sha256"));
    assert_ok(&right);
    let wrong = probe.call("hash", object(10, 6, json!({"hash": hash}), "sha256"));
    assert_outcome(&wrong, "fail", "checksum mismatch");
    let none = probe.call("nothing", object(10, 6, json!({}), "sha256"));
    let error = "malformed response: there is no `sha256` in it";
    assert_outcome(&none, "unknown", error);
}

#[test]
fn what_never_becomes_ready_was_told_nothing() {
    let start = |command: Value| probe(json!({"command": command})).call("nothing", json!({}));
    let absent = start(json!(["/no/such/program"]));
    assert_eq!(absent["outcome"], "not_sent");
    let error = absent["error"].as_str().unwrap();
    assert!(
        error.starts_with("/no/such/program cannot be started: "),
        "{error}"
    );
    let dead = start(json!(["sh", "-c", "echo no module >&2; exit 1"]));
    let error = "sh did not become ready: the program ended with exit code 1: no module";
    assert_outcome(&dead, "not_sent", error);
}

#[test]
fn a_program_that_ends_before_it_reads_a_request_has_not_sent_it() {
    let ready = "read -r line; echo '{\"ok\":true}'";
    let mut deaf = probe(json!({"command": ["sh", "-c", format!("{ready}; sleep 0.5; exit 3")]}));
    let unread = deaf.call("nothing", json!({}));
    let error = "the program ended with exit code 3";
    assert_outcome(&unread, "not_sent", error);
    let mut deaf =
        probe(json!({"command": ["sh", "-c", format!("{ready}; read -r line; exit 3")]}));
    assert_outcome(&deaf.call("nothing", json!({})), "unknown", error);
}

#[test]
fn a_deadline_of_a_requests_own_counts_while_the_program_becomes_ready() {
    let script = format!("sleep 1\n{SCRIPT}");
    let mut probe = probe(json!({"command": ["sh", "-c", script]}));
    let not_yet = "sh did not become ready: it has not answered";
    let early = probe.call("pid", json!({"deadline_ms": 50}));
    assert_outcome(&early, "not_sent", not_yet);
    let slow = probe.call("slow", json!({"deadline_ms": 3000}));
    assert_outcome(&slow, "unknown", "timeout (first byte)");
    let took_ms = slow["elapsed_ns"].as_u64().unwrap() / 1_000_000;
    assert!(took_ms < 2500, "of 3000 after some 900: {took_ms}");
}

#[test]
fn a_program_is_started_before_there_is_a_request() {
    let script = format!("sleep 1\n{SCRIPT}");
    let mut probe = probe(json!({"command": ["sh", "-c", script]}));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_ok(&probe.call("nothing", json!({"deadline_ms": 400})));
}

#[test]
fn a_line_that_makes_no_request_says_what_is_wrong() {
    let header = r#"{"command":["true"],"deadline_ms":1000}"#;
    for (fields, expected) in [
        (
            r#""request":{"op":"x"}"#,
            "`op`, which is the endpoint's name",
        ),
        (r#""request":[1]"#, "no mapping"),
        (r#""request":{"k":"{key}"}"#, "the line has none"),
        (r#""response_object":"data""#, "expected body or sha256"),
        (r#""response_object":"body""#, "needs `object_bytes`"),
    ] {
        let line = format!(r#"{{"seq":0,"phase":"measure","endpoint":"x",{fields}}}"#);
        let error = refused("exec", &format!("{header}\n{line}\n"));
        assert!(error.contains(expected), "{error}");
    }
    let error = refused("exec", r#"{"command":[],"deadline_ms":1000}"#);
    assert!(error.contains("names no program"), "{error}");
}
