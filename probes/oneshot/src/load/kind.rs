//! The kinds of requests that make up a load, of S3 and of Bob.

use crate::grpc::bob::Bob;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    S3,
    Bob,
}

/// What a request does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deed {
    Get,
    Put,
    Head,
    Remove,
}

const DEEDS: [Deed; 4] = [Deed::Get, Deed::Put, Deed::Head, Deed::Remove];

/// A deed as an API has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub api: Api,
    pub deed: Deed,
}

impl Kind {
    pub fn named(api: Api, name: &str) -> Option<Kind> {
        let kinds = DEEDS.map(|deed| Kind { api, deed });
        kinds.into_iter().find(|kind| kind.name() == name)
    }

    pub fn names(api: Api) -> Vec<&'static str> {
        DEEDS.map(|deed| Kind { api, deed }.name()).to_vec()
    }

    /// The endpoint, as samples call it.
    pub fn name(self) -> &'static str {
        match self.api {
            Api::S3 => match self.deed {
                Deed::Get => "GetObject",
                Deed::Put => "PutObject",
                Deed::Head => "HeadObject",
                Deed::Remove => "RemoveObject",
            },
            Api::Bob => self.bob().name(),
        }
    }

    /// In a record: the deed, and 4 on top for Bob's.
    pub fn code(self) -> u8 {
        self.deed as u8 + if self.api == Api::Bob { 4 } else { 0 }
    }

    /// HTTP's.
    pub fn method(self) -> &'static str {
        match self.deed {
            Deed::Get => "GET",
            Deed::Put => "PUT",
            Deed::Head => "HEAD",
            Deed::Remove => "DELETE",
        }
    }

    pub fn bob(self) -> Bob {
        match self.deed {
            Deed::Get => Bob::Get,
            Deed::Put => Bob::Put,
            Deed::Head => Bob::Exist,
            Deed::Remove => Bob::Delete,
        }
    }

    pub fn reads(self) -> bool {
        matches!(self.deed, Deed::Get | Deed::Head)
    }

    pub fn writes(self) -> bool {
        !self.reads()
    }
}
