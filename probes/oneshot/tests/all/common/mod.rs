//! A null server and a `oneshot`, both real processes, and lines between them. Servers for `oneshot
//! grpc` run inside of the test.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::thread::JoinHandle;

use oneshot::{body, clock};
use serde_json::{Value, json};

pub mod bob;
pub mod http2;

pub const OBJECT_BYTES: u64 = 1024;
pub const KEY: &str = "00112233445566ff";

/// Another package's program (benchmarks/servers), beside this one's.
fn null_server() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_oneshot")).with_file_name("null-server")
}

/// A null server on loopback; gone with this value.
pub struct Server {
    child: Child,
    journal: Option<JoinHandle<Vec<String>>>,
    pub port: u16,
}

impl Server {
    /// Answers the first request as `answers[0]` says, and so on; the last one stays.
    pub fn answering(answers: &[&str]) -> Self {
        Self::with(&[], answers)
    }

    pub fn with(arguments: &[&str], answers: &[&str]) -> Self {
        let mut command = Command::new(null_server());
        command.arg("--journal").args(arguments);
        for answer in answers {
            command.args(["--answer", answer]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("null-server is built, by `cargo build --release --workspace`");
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).expect("it says where it listens");
        let address = listening["listening"].as_str().unwrap();
        let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
        // Read all along: a server that cannot write its journal does not answer either.
        let journal = std::thread::spawn(move || output.lines().map_while(Result::ok).collect());
        Server {
            child,
            journal: Some(journal),
            port,
        }
    }

    /// Stops the server; every request that had arrived, in order.
    pub fn journal(mut self) -> Vec<Value> {
        drop(self.child.stdin.take());
        let lines = self.journal.take().unwrap().join().unwrap();
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running `oneshot`; gone with this value.
pub struct Probe {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// The next request's number.
    pub seq: u64,
}

impl Probe {
    pub fn of(server: &Server) -> Self {
        Self::with(server.port, json!({}))
    }

    /// `changes` to the usual header.
    pub fn with(port: u16, changes: Value) -> Self {
        let header = json!({
            "host": "127.0.0.1", "port": port, "region": "garage", "access_key": "ACCESS",
            "secret_key": "SECRET", "connection": "keep-alive",
        });
        Self::speaking("s3", with(header, changes))
    }

    /// `oneshot grpc` with `changes` to the usual header.
    pub fn grpc(port: u16, changes: Value) -> Self {
        let header = json!({"host": "127.0.0.1", "port": port, "connection": "keep-alive"});
        Self::speaking("grpc", with(header, changes))
    }

    /// `oneshot` with this header and, if it has none, a deadline.
    pub fn speaking(protocol: &str, header: Value) -> Self {
        let header = with(json!({"deadline_ms": 10_000}), header);
        let mut child = Command::new(env!("CARGO_BIN_EXE_oneshot"))
            .arg(protocol)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("oneshot runs");
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{header}").unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Probe {
            child,
            input: Some(input),
            output,
            seq: 0,
        }
    }

    /// One request, with `fields` beside the usual ones; its record.
    pub fn ask(&mut self, endpoint: &str, fields: Value) -> Value {
        let mut request = json!({});
        if endpoint != "ListBuckets" {
            request["bucket"] = json!("bucket");
        }
        if endpoint.ends_with("Object") {
            request["key"] = json!("key");
        }
        self.call(endpoint, with(request, fields))
    }

    /// One request to a gRPC, HTTP or program's endpoint; its record.
    pub fn call(&mut self, endpoint: &str, fields: Value) -> Value {
        let request = json!({"seq": self.seq, "phase": "measure", "endpoint": endpoint});
        let request = with(request, fields);
        writeln!(self.input.as_mut().unwrap(), "{request}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let record: Value = serde_json::from_str(&line).expect("a record");
        assert_eq!(record["seq"], self.seq);
        self.seq += 1;
        record
    }

    /// GetObject of the null server's canned object, its body checked.
    pub fn get(&mut self) -> Value {
        self.ask(
            "GetObject",
            json!({"object_bytes": OBJECT_BYTES, "body_seed": 0}),
        )
    }

    pub fn put(&mut self, bytes: u64) -> Value {
        self.ask("PutObject", json!({"object_bytes": bytes, "body_seed": 5}))
    }

    /// Put of a blob of so many bytes, which `get_blob` gets.
    pub fn put_blob(&mut self, bytes: u64) -> Value {
        self.call("Put", blob(bytes))
    }

    pub fn get_blob(&mut self, bytes: u64) -> Value {
        self.call("Get", blob(bytes))
    }

    pub fn ping(&mut self) -> Value {
        self.call("Ping", json!({}))
    }

    /// The most memory that the process has had (VmHWM).
    pub fn peak_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib * 1024
    }

    /// Ends the plan; the process's exit code.
    pub fn finish(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn blob(bytes: u64) -> Value {
    json!({"key": KEY, "object_bytes": bytes, "body_seed": 5})
}

/// An object with `fields` beside or in place of its own.
pub fn with(mut object: Value, fields: Value) -> Value {
    let fields = fields.as_object().expect("fields are an object").clone();
    object.as_object_mut().unwrap().extend(fields);
    object
}

/// Runs `oneshot` to its end.
pub fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_oneshot"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have left already, having seen enough.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// The message with which `oneshot` refuses a plan: exit code 2, before it writes a record.
pub fn refused(protocol: &str, plan: &str) -> String {
    let output = run(&[protocol], plan);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{plan}: {error}");
    assert!(output.stdout.is_empty());
    error
}

/// The CPU time that hashing so many bytes takes here: nobody who waits for a processor needs less.
pub fn hashing_ns(bytes: u64) -> u64 {
    let before_ns = clock::thread_cpu_ns();
    body::sha256(0, bytes);
    clock::thread_cpu_ns() - before_ns
}

/// A duration of a record in milliseconds.
pub fn ms(record: &Value, field: &str) -> f64 {
    let ns = record[field].as_u64();
    ns.unwrap_or_else(|| panic!("{field} is not a duration in {record}")) as f64 / 1e6
}

/// The rows of a table: a line each, with ` | ` between its cells.
pub fn rows<const N: usize>(table: &str) -> Vec<[&str; N]> {
    let row = |line| {
        let cells: Vec<&str> = str::split(line, '|').map(str::trim).collect();
        cells
            .try_into()
            .expect("as many cells as there are columns")
    };
    table.trim().lines().map(row).collect()
}

pub fn quickest(records: &[Value], time: impl Fn(&Value) -> f64) -> f64 {
    records.iter().map(time).fold(f64::INFINITY, f64::min)
}

pub fn longest(records: &[Value], time: impl Fn(&Value) -> f64) -> f64 {
    records.iter().map(time).fold(0.0, f64::max)
}

/// Of requests on one connection: the phases of each are in order, the starts on one clock, and no
/// two in flight; only the first one connects.
pub fn assert_phases(mut ask: impl FnMut() -> Value) {
    let mut last_end = 0;
    for round in 0..50 {
        let before = clock::now_ns();
        let record = ask();
        let after = clock::now_ns();
        let ns = |field: &str| record[field].as_u64().unwrap();
        let phases = ["connect_ns", "sent_ns", "first_byte_ns", "total_ns"].map(ns);
        assert!(phases.is_sorted(), "{record}");
        assert_eq!(record["new_connection"], round == 0);
        assert_eq!(phases[0] > 0, round == 0, "{record}");
        let (start, end) = (ns("start_ns"), ns("start_ns") + ns("total_ns"));
        assert!(before < start && end < after, "{record}");
        assert!(start > last_end, "never two in flight");
        last_end = end;
    }
}

#[track_caller]
pub fn assert_outcome(record: &Value, outcome: &str, error: &str) {
    assert_eq!(record["outcome"], outcome, "{record}");
    assert_eq!(record["error"], error, "{record}");
}

#[track_caller]
pub fn assert_ok(record: &Value) {
    assert_eq!(record["outcome"], "ok", "{record}");
    assert_eq!(record["error"], Value::Null, "{record}");
}
