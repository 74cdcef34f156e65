//! Messages for those who run a node.

use std::fmt::Display;
use std::io::Write;

/// Writes a line to stderr. A full disk behind it must not stop the node, as `eprintln` would.
pub fn say(message: impl Display) {
    let _ = writeln!(std::io::stderr(), "quorum: {message}");
}

/// A loud line for each flag that is on.
pub fn announce(kind: &str, planted: &[(bool, &str)]) {
    for (_, flag) in planted.iter().filter(|(on, _)| *on) {
        say(format_args!("*** {kind} PLANTED: {flag} ***"));
    }
}
