//! Bob's keys: eight bytes.

use std::fmt;

use tonic::Status;
use wanlat_proto::bob_storage::BlobKey;

use crate::protocol::BUCKET;
use crate::store::ObjectName;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key(pub [u8; 8]);

impl Key {
    /// # Errors
    /// `INVALID_ARGUMENT` without one, and for one of another length.
    pub fn of(sent: Option<&BlobKey>) -> Result<Self, Status> {
        let sent = sent.ok_or_else(|| Status::invalid_argument("the request has no key"))?;
        let wrong = |_| {
            let len = sent.key.len();
            Status::invalid_argument(format!("a key has 8 bytes, this one has {len}"))
        };
        Ok(Self(sent.key[..].try_into().map_err(wrong)?))
    }

    pub fn name(self) -> ObjectName {
        ObjectName {
            bucket: BUCKET.into(),
            key: self.to_string(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bytes: &'static [u8]) -> Result<Key, Status> {
        let key = bytes.into();
        Key::of(Some(&BlobKey { key }))
    }

    #[test]
    fn a_key_is_named_by_its_bytes_in_order() {
        let name = key(b"\x01\x02\x03\xab\0\0\0\xff").unwrap().name();
        assert_eq!(name.key, "010203AB000000FF");
        assert_eq!(name.bucket, BUCKET);
    }

    #[test]
    fn a_key_of_another_length_is_none() {
        for bytes in [&b""[..], b"1234567", b"123456789"] {
            let code = key(bytes).unwrap_err().code();
            assert_eq!(code, tonic::Code::InvalidArgument);
        }
    }
}
