//! The packet record: every packet that crosses a link, with the instants of its entry and its
//! departure, as rows for a table and as a pcapng file for people.
//!
//! ```text
//!   event loop: Recorder ─► queue ─► Writer, in a thread of its own ─► Files: rows and pcapng
//! ```
//!
//! The event loop never waits: what finds no room in the queue is counted as missing.

mod files;
mod packet;
mod pcapng;
mod recorder;
mod rows;
mod settings;
mod shared;
mod writer;

pub use packet::Outcome;
pub use recorder::Recorder;
pub use settings::{Place, Settings};
pub use shared::Status;
