//! Messages for those who run a node.

use std::fmt::Display;
use std::io::Write;

/// Writes a line to stderr. A full disk behind it must not stop the node, as `eprintln` would.
pub fn say(message: impl Display) {
    let _ = writeln!(std::io::stderr(), "quorum: {message}");
}
