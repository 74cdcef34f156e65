//! A test inside namespaces of its own.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

/// Set in the process that is inside.
const INSIDE: &str = "WIRE_TEST_INSIDE";

/// No test takes longer; one that does is killed, and with it all that it started.
const PATIENCE: Duration = Duration::from_secs(240);

/// Tests run beside each other, but for those that send as fast as they can.
static ALONE: RwLock<()> = RwLock::new(());

/// Runs `body`, which is all of a test, in a new user namespace (as its root) and a new network
/// namespace, by running the test again in there.
pub fn inside(body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let _others = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    run_again(test_of(&body));
}

/// The same while no other test runs. The kernel keeps at most a thousand frames a processor
/// between two interfaces, those of all namespaces together (net.core.netdev_max_backlog), and
/// drops what is more: one test must not fill that of another.
pub fn inside_alone(body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    run_again(test_of(&body));
}

/// The test that a closure is in: `loss::it_is_rare` of `all::loss::it_is_rare::{{closure}}`.
fn test_of<T>(_body: &T) -> &'static str {
    let name = std::any::type_name::<T>();
    let name = name.strip_suffix("::{{closure}}").unwrap_or(name);
    name.split_once("::").map_or(name, |(_, test)| test)
}

fn run_again(name: &str) {
    if let Err(reason) = namespaces_allowed() {
        return report(&format!("SKIPPED {name}: {reason}"));
    }
    let (mut output, write_end) = io::pipe().unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--net"])
        .arg(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .stdout(write_end.try_clone().unwrap())
        .stderr(write_end);
    let mut child = command.spawn().unwrap();
    drop(command); // and with it our copies of the write end
    let reader = thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let text = reader.join().unwrap().unwrap_or_default();
    for (_, measured) in text
        .lines()
        .filter_map(|line| line.split_once("measured: "))
    {
        report(&format!("{name}: {measured}"));
    }
    assert!(text.contains("1 passed"), "{status:?} inside:\n{text}");
}

/// Prints past the test harness, which shows output of failed tests only.
fn report(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn namespaces_allowed() -> Result<(), String> {
    let attempt = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "ip", "link"])
        .output()
        .map_err(|error| format!("unshare (util-linux) cannot be run: {error}"))?;
    if attempt.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&attempt.stderr).trim().to_owned();
    Err(format!(
        "user and network namespaces with ip (iproute2) cannot be used here: {reason}"
    ))
}
