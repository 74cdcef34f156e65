//! A thousand links in one process: their start, their idling, their end.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::Lab;
use crate::program::Wire;
use crate::sandbox::inside;

/// 20 sites in a full mesh, and 1,000 nodes.
const LINKS: usize = 1_190;

/// CPU time that starting may take, in ticks of 10 ms: eight times what it takes. What looks at all
/// links for each of them takes more.
const START_TICKS: u64 = 200;

/// Makes a pair of interfaces for each link, all with one process.
fn make_interfaces() {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for link in 0..LINKS {
        // Nobody sends: what one end gets out of the other would go round and round.
        writeln!(
            input,
            "link add x{link} type veth peer name y{link}\n\
             link set x{link} addrgenmode none up\nlink set y{link} addrgenmode none up"
        )
        .unwrap();
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

fn links() -> Vec<Value> {
    let impairment = json!({"delay_ns": 50_000_000, "jitter_ns": 10_000_000, "table": "even",
        "bursts": {"p": 0.01, "r": 0.3}, "duplicate": 0.01});
    (0..LINKS)
        .map(|link| {
            json!({"a": format!("x{link}"), "b": format!("y{link}"), "ab": impairment,
                   "ba": impairment})
        })
        .collect()
}

#[test]
fn a_thousand_links_start_and_end_and_cost_nothing_between() {
    inside(|| {
        let mut wire = Wire::spawn(&[]);
        make_interfaces();
        let table: Vec<f64> = (0..4_096).map(|i| f64::from(i) / 2_048.0 - 1.0).collect();
        let start = json!({"op": "start", "seed": 1, "tables": {"even": table}, "links": links()});
        wire.ask_ok(&start);
        let start_ticks = wire.cpu_ticks();
        std::thread::sleep(Duration::from_secs(1));
        let idle_ticks = wire.cpu_ticks() - start_ticks;
        // It is waited for, but not for as long as the kernel takes to close thousands of
        // sockets one after the other.
        wire.finish();
        println!(
            "measured: {LINKS} links start in {} ms of CPU time, and use {} ms of a second",
            10 * start_ticks,
            10 * idle_ticks
        );
        assert!(start_ticks < START_TICKS, "{start_ticks} ticks");
        assert!(idle_ticks <= 5, "{idle_ticks} ticks");
    });
}

#[test]
fn too_few_descriptors_are_told_with_what_is_needed() {
    inside(|| {
        let limited = concat!("ulimit -n 7; exec ", env!("CARGO_BIN_EXE_wire"));
        let mut lab = Lab::around(|| Wire::spawn_program("sh", &["-c", limited]));
        let link = json!({"a": "wa", "b": "wb"});
        let answer = lab
            .wire
            .ask(&json!({"op": "start", "seed": 1, "links": [link]}));
        let error = answer["error"].as_str().unwrap();
        for part in [
            "1 links need 2 descriptors",
            "RLIMIT_NOFILE allows 7",
            "ulimit",
        ] {
            assert!(error.contains(part), "{error}");
        }
        lab.wire.finish();
    });
}
