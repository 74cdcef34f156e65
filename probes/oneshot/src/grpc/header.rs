//! The plan's first line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::grpc::framing::MAX_MESSAGE_BYTES;
use crate::grpc::window::Window;
use crate::plan::{self, ConnectionMode, HeaderLine, LoadTerms, PlanLine, Terms};

/// Room for the key, the time and the tags that go with an object in a message.
const AROUND_OBJECT_BYTES: u64 = 1024;

/// Bob's message with an object of 100 MiB fits.
const DEFAULT_MESSAGE_BYTES: u64 = 128 << 20;

/// The plan's first line: where to, for how long at most, and what may be asked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub host: String,
    pub port: u16,
    #[serde(default)]
    pub connection: ConnectionMode,
    pub deadline_ms: u64,
    /// The longest message in either direction, without the five bytes that come before it.
    #[serde(default = "default_message_bytes")]
    pub max_message_bytes: u64,
    /// HTTP/2's, for answers.
    #[serde(default)]
    pub window: Window,
    /// The .proto files whose methods the plan asks; Bob's needs none.
    #[serde(default)]
    pub protos: Vec<PathBuf>,
    /// The directories that these, and what they import, are looked up in.
    #[serde(default)]
    pub includes: Vec<PathBuf>,
    /// Sent with every request.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

fn default_message_bytes() -> u64 {
    DEFAULT_MESSAGE_BYTES
}

impl PlanLine for Header {
    fn check(&self) -> Result<(), String> {
        plan::check_deadline(Some(self.deadline_ms))?;
        if !(1..=MAX_MESSAGE_BYTES).contains(&self.max_message_bytes) {
            return Err(format!(
                "`max_message_bytes` is {}, which is not from 1 to {MAX_MESSAGE_BYTES}",
                self.max_message_bytes
            ));
        }
        Ok(())
    }
}

impl HeaderLine for Header {
    fn terms(&self) -> Terms {
        Terms {
            connection: self.connection,
            deadline_ms: self.deadline_ms,
        }
    }

    fn take(&mut self, load: LoadTerms) -> Result<(), String> {
        let longest = self.max_message_bytes.saturating_sub(AROUND_OBJECT_BYTES);
        if load.object_bytes > longest {
            return Err(format!(
                "`object_bytes` does not fit into a message of at most {} bytes \
                 (`max_message_bytes`)",
                self.max_message_bytes
            ));
        }
        Ok(())
    }
}
