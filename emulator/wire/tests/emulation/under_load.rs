//! Round-trip times while others compete for the CPU.
//!
//! `cargo test --release -p wire --test emulation under_load -- --ignored --nocapture` measures.
//! It runs for a minute, means something only on a machine that does nothing else, and asserts
//! nothing. `WIRE_PROGRAMS=a:b` compares builds of the program, round by round in turn.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::frames::{DIRECT_LEFT, DIRECT_RIGHT, LEFT, RIGHT, echo_request};
use crate::lab::Lab;
use crate::program::Wire;
use crate::sandbox::inside;
use crate::station::quantile;

const MILLISECOND: u64 = 1_000_000;
const BUSY: usize = 5;
const ECHOES: u32 = 400;
const ROUNDS: usize = 4;

/// Processes that do nothing but compute.
struct Busy(Vec<Child>);

impl Busy {
    /// In sessions of their own (as a lab starts its stores; with sched_autogroup each is then
    /// scheduled as a group) or in ours.
    fn start(count: usize, own_sessions: bool) -> Busy {
        let start = || {
            // It ends by itself should this process not come to kill it.
            let words = [
                "timeout",
                "--foreground",
                "60",
                "sh",
                "-c",
                "while :; do :; done",
            ];
            let mut command = match own_sessions {
                true => Command::new("setsid"), // which makes it the leader of a group, too
                false => Command::new("env"),
            };
            if !own_sessions {
                command.process_group(0);
            }
            command.args(words).stdin(Stdio::null()).spawn().unwrap()
        };
        Busy((0..count).map(|_| start()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let group = format!("-{}", child.id());
            let _ = Command::new("kill").args(["-9", "--", &group]).status();
            let _ = child.wait();
        }
    }
}

fn measure(program: &str, rtt_ns: u64, apart_ns: u64) -> Vec<i64> {
    let mut lab = Lab::around(|| Wire::spawn_program(program, &[]));
    let impairment = json!({"delay_ns": rtt_ns / 2});
    lab.wire.ask_ok(&json!({
        "op": "start", "seed": 1,
        "links": [{"a": "wa", "b": "wb", "ab": impairment, "ba": impairment}],
    }));
    let (mut left, _right) = lab.stations();
    let mut direct = lab.direct_station();
    let round_trips = |(from, to), station: &mut crate::station::Station, count: u32| {
        let requests = (0..count).map(|number| echo_request(from, to, number));
        let sent_ns = station.send_all(requests, apart_ns);
        let replies = station.receive(count as usize, 3_000_000_000);
        assert!(
            10 * replies.len() >= 9 * count as usize,
            "{} of {count}",
            replies.len()
        );
        let times = replies.iter();
        times
            .map(|reply| (reply.at_ns - sent_ns[reply.number() as usize]) as i64)
            .collect::<Vec<i64>>()
    };
    let cable = round_trips((DIRECT_LEFT, DIRECT_RIGHT), &mut direct, 50);
    let cable_ns = quantile(&cable, 0.5);
    let measured = round_trips((LEFT, RIGHT), &mut left, ECHOES);
    lab.wire.finish();
    measured
        .iter()
        .map(|rtt| rtt - rtt_ns as i64 - cable_ns)
        .collect()
}

fn compare(rtt_ns: u64, apart_ns: u64) {
    let programs = std::env::var("WIRE_PROGRAMS").unwrap_or_default();
    let programs: Vec<&str> = match programs.is_empty() {
        true => vec![env!("CARGO_BIN_EXE_wire")],
        false => programs.split(':').collect(),
    };
    for (kind, own_sessions) in [("of their own", true), ("as wire's", false)] {
        let mut errors_ns = vec![Vec::new(); programs.len()];
        for _ in 0..ROUNDS {
            for (program, errors_ns) in programs.iter().zip(&mut errors_ns) {
                let _busy = Busy::start(BUSY, own_sessions);
                errors_ns.push(measure(program, rtt_ns, apart_ns));
            }
        }
        for (program, errors_ns) in programs.iter().zip(errors_ns) {
            let p99s_us: Vec<i64> = errors_ns
                .iter()
                .map(|e| quantile(e, 0.99) / 1_000)
                .collect();
            let all = errors_ns.concat();
            println!(
                "measured: {program}: RTT {} ms, {BUSY} busy processes, sessions {kind}: error \
                 p50 {} us, p90 {} us, p99 {} us, most {} us; p99 of each round {p99s_us:?}",
                rtt_ns / MILLISECOND,
                quantile(&all, 0.5) / 1_000,
                quantile(&all, 0.9) / 1_000,
                quantile(&all, 0.99) / 1_000,
                quantile(&all, 1.0) / 1_000,
            );
        }
    }
}

#[test]
#[ignore = "a measurement: it takes a quiet machine for itself"]
fn round_trips_of_100_ms_beside_five_busy_processes() {
    inside(
        "under_load::round_trips_of_100_ms_beside_five_busy_processes",
        || compare(100 * MILLISECOND, 7 * MILLISECOND),
    );
}

#[test]
#[ignore = "a measurement: it takes a quiet machine for itself"]
fn round_trips_of_1_ms_beside_five_busy_processes() {
    inside(
        "under_load::round_trips_of_1_ms_beside_five_busy_processes",
        || compare(MILLISECOND, 5 * MILLISECOND),
    );
}
