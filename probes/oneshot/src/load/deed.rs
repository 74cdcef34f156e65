//! What a request of a load does to an object, and what that is called.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    S3,
    Bob,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deed {
    Get,
    Put,
    Head,
    Remove,
}

const ALL: [Deed; 4] = [Deed::Get, Deed::Put, Deed::Head, Deed::Remove];

impl Api {
    fn names(self) -> [&'static str; 4] {
        match self {
            Api::S3 => ["GetObject", "PutObject", "HeadObject", "RemoveObject"],
            Api::Bob => ["Get", "Put", "Exist", "Delete"],
        }
    }

    /// The endpoint, as samples call it.
    pub fn name(self, deed: Deed) -> &'static str {
        self.names()[deed as usize]
    }

    /// # Errors
    /// There is none of this name; which there are.
    pub fn deed(self, name: &str) -> Result<Deed, String> {
        let found = ALL.into_iter().find(|deed| self.name(*deed) == name);
        found.ok_or_else(|| format!("{name:?}; this API has {}", self.names().join(", ")))
    }

    /// In a record: the deed, and 4 on top for Bob's.
    pub fn code(self, deed: Deed) -> u8 {
        deed as u8 + if self == Api::Bob { 4 } else { 0 }
    }
}

impl Deed {
    pub fn reads(self) -> bool {
        matches!(self, Deed::Get | Deed::Head)
    }
}
