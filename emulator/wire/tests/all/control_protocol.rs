//! The program's conversation: requests, refusals, and how it ends. Needs no privileges.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn wire(options: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_wire"))
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end of the program, but not for ever.
fn finish(mut child: Child) -> Output {
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("wire did not end: {:?}", child.wait_with_output());
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// Says all of `input`, closes, and returns the answers. The program must end with 0.
fn converse(input: &[u8]) -> Vec<serde_json::Value> {
    let mut child = wire(&[]);
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = finish(child);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn error(answer: &serde_json::Value) -> &str {
    assert_eq!(answer["ok"], false, "{answer}");
    answer["error"].as_str().unwrap()
}

#[test]
fn it_ends_with_0_when_its_input_is_closed() {
    assert!(converse(b"").is_empty());
}

#[test]
fn a_file_is_no_conversation() {
    let child = Command::new(env!("CARGO_BIN_EXE_wire"))
        .stdin(std::fs::File::open("/dev/null").unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finish(child);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("must be pipes"));
}

#[test]
fn every_wrong_line_is_answered_by_an_error_and_the_conversation_goes_on() {
    let lines: [&[u8]; 7] = [
        b"hello",
        b"{\"op\":\"stats\"}",
        b"\xff\xfe\x00",
        b"{\"op\":\"set\",\"changes\":[]}",
        b"",
        b"{\"op\":\"start\",\"seed\":1,\"links\":[{\"a\":\"no-such-end\",\"b\":\"y\"}]}",
        b"{\"op\":\"start\",\"seed\":1,\"links\":[{\"a\":\"x\",\"b\":\"x\"}]}",
    ];
    let answers = converse(&lines.join(&b'\n'));
    let errors: Vec<&str> = answers.iter().map(error).collect();
    assert_eq!(errors.len(), 6, "an empty line needs no answer: {errors:?}");
    assert!(errors[0].contains("not a request"));
    assert!(errors[1].contains("not started"));
    assert!(errors[2].contains("not a request"));
    assert!(errors[3].contains("not started"));
    assert!(errors[4].contains("no-such-end"));
    assert!(errors[5].contains("link 0 already"));
}

#[test]
fn an_impossible_impairment_is_refused_with_the_link_and_the_way() {
    let answers =
        converse(br#"{"op":"start","seed":1,"links":[{"a":"x","b":"y","ba":{"jitter_ns":5}}]}"#);
    assert!(
        error(&answers[0]).contains("link 0 ba: jitter_ns"),
        "{answers:?}"
    );
}

#[test]
fn a_lab_without_links_starts_once() {
    let start = br#"{"op":"start","seed":1,"links":[]}"#;
    let stats = br#"{"op":"stats"}"#;
    let answers = converse(&[&start[..], start, stats].join(&b'\n'));
    assert_eq!(answers[0]["ok"], true);
    assert!(answers[0]["t_ns"].as_u64().unwrap() > 0);
    assert!(error(&answers[1]).contains("already"));
    assert_eq!(answers[2]["links"], serde_json::json!([]));
}

#[test]
fn an_answer_comes_as_soon_as_its_line_is_whole() {
    let mut child = wire(&[]);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        input.write_all(b"{\"op\":").unwrap();
        thread::sleep(Duration::from_millis(20));
        input.write_all(b"\"stats\"}\n").unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        assert!(answer.contains("not started"));
    }
    drop(input);
    assert!(finish(child).status.success());
}

#[test]
fn a_line_without_end_is_refused_and_not_kept_in_memory() {
    let mut input = vec![b'x'; 140 << 20];
    input.extend(b"\n{\"op\":\"stats\"}\n");
    let answers = converse(&input);
    assert_eq!(answers.len(), 2);
    assert!(error(&answers[0]).contains("too long"));
}

#[test]
fn ten_thousand_requests_are_answered_though_nobody_reads_the_answers_meanwhile() {
    let mut child = wire(&[]);
    let mut input = child.stdin.take().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let writer = thread::spawn(move || {
        for _ in 0..10_000 {
            input.write_all(b"{\"op\":\"stats\"}\n").unwrap();
        }
    });
    thread::sleep(Duration::from_millis(200));
    assert_eq!(output.lines().count(), 10_000);
    writer.join().unwrap();
    assert!(finish(child).status.success());
}

#[test]
fn it_ends_when_nobody_can_read_its_answers() {
    let mut child = wire(&[]);
    drop(child.stdout.take());
    let input = child.stdin.take();
    let output = finish(child);
    assert_eq!(output.status.code(), Some(1));
    drop(input);
}

#[test]
fn wrong_options_end_with_2_and_say_why() {
    for options in [&["--memory-mib", "0"][..], &["--memory-mib"], &["--frob"]] {
        let output = finish(wire(options));
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(options[0]), "{message}");
    }
}
