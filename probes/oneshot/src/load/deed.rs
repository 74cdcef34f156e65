//! What a request of a load does to an object.

use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Deed {
    #[serde(rename = "read")]
    Get,
    #[serde(rename = "write")]
    Put,
    #[serde(rename = "exists")]
    Head,
    #[serde(rename = "delete")]
    Remove,
}

impl Deed {
    pub fn reads(self) -> bool {
        matches!(self, Deed::Get | Deed::Head)
    }
}
