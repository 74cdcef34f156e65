//! The program under test, and the conversation with it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Answers and ends are waited for this long, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running `wire`. It ends with the process that started it, because its input ends then.
pub struct Wire {
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Wire {
    /// Starts the program in the current network namespace.
    pub fn spawn(options: &[&str]) -> Wire {
        Wire::spawn_program(env!("CARGO_BIN_EXE_wire"), options)
    }

    /// Starts another build of the program.
    pub fn spawn_program(program: &str, options: &[&str]) -> Wire {
        let mut child = Command::new(program)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, answers) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Wire {
            input: child.stdin.take(),
            child,
            answers,
        }
    }

    /// Asks, and returns the answer whatever it is.
    pub fn ask(&mut self, request: &Value) -> Value {
        let mut line = request.to_string();
        line.push('\n');
        self.input
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
        let answer = self.answers.recv_timeout(PATIENCE).expect("an answer");
        serde_json::from_str(&answer).unwrap()
    }

    /// Asks, and returns the instant of the positive answer.
    pub fn ask_ok(&mut self, request: &Value) -> u64 {
        let answer = self.ask(request);
        assert_eq!(answer["ok"], true, "{answer}");
        answer["t_ns"].as_u64().unwrap()
    }

    /// Changes one direction of link 0; returns the instant of the change.
    pub fn set(&mut self, direction: &str, impairment: &Value) -> u64 {
        let change = json!({"link": 0, "direction": direction, "impairment": impairment});
        self.ask_ok(&json!({"op": "set", "changes": [change]}))
    }

    /// The counters of one direction of link 0.
    pub fn stats(&mut self, direction: &str) -> Counters {
        let answer = self.ask(&json!({"op": "stats"}));
        Counters(answer["links"][0][direction].clone())
    }

    /// The counters of one direction of link 0, once `received` frames have come and gone.
    pub fn settle(&mut self, direction: &str, received: u64) -> Counters {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let counters = self.stats(direction);
            if counters.get("received") >= received && counters.get("held") == 0 {
                return counters;
            }
            assert!(
                Instant::now() < deadline,
                "not {received} frames: {}",
                counters.0
            );
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// CPU time that the program has used, in ticks of 10 ms (fields 14 and 15 of proc(5) stat).
    pub fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let after_name = &stat[stat.rfind(')').unwrap() + 2..];
        let fields: Vec<&str> = after_name.split(' ').collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Closes the input; the program must end with 0.
    pub fn finish(&mut self) {
        drop(self.input.take());
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                return;
            }
            assert!(Instant::now() < deadline, "wire does not end");
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // A failed test comes here too; what has ended already is not an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `stats` told about one direction.
pub struct Counters(Value);

impl Counters {
    pub fn get(&self, name: &str) -> u64 {
        let value = self.0[name].as_u64();
        value.unwrap_or_else(|| panic!("no {name} in {}", self.0))
    }

    /// Every frame received or made is in exactly one other place.
    pub fn assert_nothing_unaccounted(&self) {
        let places = [
            "packets",
            "lost",
            "queue_drops",
            "memory_drops",
            "receive_errors",
            "send_errors",
            "held",
        ];
        let there: u64 = places.iter().map(|name| self.get(name)).sum();
        let came = self.get("received") + self.get("duplicated");
        assert_eq!(came, there, "{}", self.0);
    }
}
