//! HTTP/2's windows: how much a server may send before it is told to go on.
//!
//! A sender stops when the receiver's window is full, and the WINDOW_UPDATE that opens it again
//! takes half a round trip to be heeded. So over distance the window is a limit of throughput, one
//! window a round trip, as soon as an answer is longer than it; and it is the client's doing, not
//! the store's. Both a stream and the connection have one.

use serde::Deserialize;

use crate::grpc::framing::{MAX_MESSAGE_BYTES, PREFIX_BYTES};

/// Where nobody asks for another (RFC 9113, 6.9.2), and the largest there can be.
const LEAST_BYTES: u32 = 65_535;
const GREATEST_BYTES: u32 = (1 << 31) - 1;

/// The windows that are opened for answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Window {
    /// A whole answer fits, so that none ever waits for a WINDOW_UPDATE, the first as little as the
    /// tenth: the stream's holds the longest message, and the connection's two of them, because h2
    /// opens it again only when half of it is used up.
    #[default]
    Large,
    /// Those of a tonic client that sets none: 2 MiB a stream, 5 MiB the connection, by the HTTP
    /// library below it (`DEFAULT_STREAM_WINDOW` and `DEFAULT_CONN_WINDOW` in
    /// hyper/src/proto/h2/client.rs, alike in 0.14 and 1.x). Bob's own client is such a one.
    Tonic,
    /// HTTP/2's own, 65,535 bytes: a client that sets none and has no library that does.
    Default,
}

impl Window {
    /// A stream's, where a message has at most so many bytes.
    pub fn stream_bytes(self, max_message_bytes: u64) -> u32 {
        match self {
            Window::Large => message_bytes(max_message_bytes).max(LEAST_BYTES),
            Window::Tonic => 2 << 20,
            Window::Default => LEAST_BYTES,
        }
    }

    /// The connection's.
    pub fn connection_bytes(self, max_message_bytes: u64) -> u32 {
        match self {
            Window::Large => {
                (2 * message_bytes(max_message_bytes)).clamp(LEAST_BYTES, GREATEST_BYTES)
            }
            Window::Tonic => 5 << 20,
            Window::Default => LEAST_BYTES,
        }
    }

    /// Is it opened again while an answer is read? By h2, when half of it is used up.
    pub fn opens_as_read(self) -> bool {
        self != Window::Large
    }
}

fn message_bytes(max_message_bytes: u64) -> u32 {
    max_message_bytes.min(MAX_MESSAGE_BYTES) as u32 + PREFIX_BYTES as u32
}
