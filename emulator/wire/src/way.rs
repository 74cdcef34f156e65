//! The two directions of a link.

use std::fmt;

use serde::Deserialize;

/// One of the two directions of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// From the interface `a` to `b`.
    Ab,
    /// From the interface `b` to `a`.
    Ba,
}

impl Way {
    /// The position of this direction of a link among the directions of all links.
    pub fn of_link(self, link: usize) -> usize {
        link.saturating_mul(2).saturating_add(self as usize)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Way::Ab => "ab",
            Way::Ba => "ba",
        })
    }
}
