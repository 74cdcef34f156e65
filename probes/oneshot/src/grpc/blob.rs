//! A large `bob_storage.Blob`, compared with what it must hold while it arrives, and not kept.
//!
//! Where the object begins is read off the message's first bytes; what is beside it is kept, and
//! judged by prost once the clock has stopped.

use bytes::Buf;
use prost::Message;
use prost::encoding::{self, DecodeContext, WireType};
use wanlat_proto::bob_storage::Blob;

use crate::body::WHOLE_BYTES;
use crate::grpc::framing::{PREFIX_BYTES, check_length};
use crate::verify::Verifier;

/// Where the object begins is looked for in so many bytes of the answer at most.
pub const BEGIN_BYTES: u64 = 256 * 1024;

/// The number of `Blob.data`.
const DATA: u32 = 1;
/// What a message may hold beside the object. Bob's holds a timestamp.
const BESIDE_BYTES: usize = 64 * 1024;
/// A message up to this length is kept, and checked in one piece.
pub const HELD_BYTES: u64 = WHOLE_BYTES + BESIDE_BYTES as u64;

/// A message whose object is arriving.
#[derive(Debug)]
pub struct BlobReader {
    object: Verifier,
    object_left: u64,
    message_bytes: u64,
    received: u64,
    /// The message without its object.
    beside: Vec<u8>,
    after: u64,
}

impl BlobReader {
    /// Begins with all bytes that have come so far of an answer that should hold the object of
    /// `seed`. None: where the object begins cannot be told from them.
    pub fn begin(seed: u64, first: &[u8]) -> Option<Self> {
        let mut message = first.get(PREFIX_BYTES..)?;
        if first[0] != 0 {
            return None; // compressed, which nobody asked for
        }
        let message_bytes = u64::from(u32::from_be_bytes(first[1..PREFIX_BYTES].try_into().ok()?));
        loop {
            let field = message;
            let (number, wire_type) = encoding::decode_key(&mut message).ok()?;
            if number == DATA && wire_type == WireType::LengthDelimited {
                let mut reader = BlobReader {
                    object: Verifier::new(seed),
                    object_left: encoding::decode_varint(&mut message).ok()?,
                    message_bytes,
                    received: (first.len() - message.remaining()) as u64,
                    beside: first[PREFIX_BYTES..first.len() - field.remaining()].to_vec(),
                    after: 0,
                };
                reader.take(message);
                return Some(reader);
            }
            let context = DecodeContext::default();
            encoding::skip_field(wire_type, number, &mut message, context).ok()?;
        }
    }

    /// The next bytes have come.
    pub fn take(&mut self, piece: &[u8]) {
        self.received += piece.len() as u64;
        let of_object = self.object_left.min(piece.len() as u64);
        let (object, after) = piece.split_at(of_object as usize);
        if !object.is_empty() {
            self.object.take(object);
            self.object_left -= of_object;
        }
        self.after += after.len() as u64;
        let room = BESIDE_BYTES.saturating_sub(self.beside.len());
        self.beside
            .extend_from_slice(&after[..after.len().min(room)]);
    }

    pub fn object(&self) -> &Verifier {
        &self.object
    }

    /// The answer is at its end. Err: what it is instead of one message with one object.
    pub fn finish(&self) -> Result<&Verifier, String> {
        if self.object_left > 0 {
            return Err("there is no whole message".into());
        }
        check_length(self.message_bytes, self.received - PREFIX_BYTES as u64)?;
        if self.beside.len() >= BESIDE_BYTES {
            return Err(format!("{} bytes after the object", self.after));
        }
        let beside = Blob::decode(&self.beside[..]).map_err(|error| error.to_string())?;
        if !beside.data.is_empty() {
            return Err("a message with two objects".into());
        }
        Ok(&self.object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body;
    use crate::grpc::framing::framed;
    use wanlat_proto::bob_storage::BlobMeta;

    fn answer(bytes: u64) -> Vec<u8> {
        let data = body::whole(7, bytes).into();
        let meta = Some(BlobMeta { timestamp: 1 << 40 });
        framed(&Blob { data, meta }).to_vec()
    }

    fn read(answer: &[u8], first: usize, piece: usize) -> Option<BlobReader> {
        let (first, rest) = answer.split_at(first);
        let mut reader = BlobReader::begin(7, first)?;
        rest.chunks(piece).for_each(|piece| reader.take(piece));
        Some(reader)
    }

    #[test]
    fn an_object_is_found_however_the_answer_is_cut() {
        let answer = answer(5000);
        for first in 0..100 {
            for piece in [1, 7, 4096, 10_000] {
                // The prefix is 5 bytes, the object's tag 1, its length 2.
                let reader = read(&answer, first, piece);
                assert_eq!(reader.is_some(), first >= 8, "{first} bytes first");
                if let Some(reader) = reader {
                    assert!(reader.finish().unwrap().is_right(5000));
                }
            }
        }
    }

    #[test]
    fn fields_may_come_in_any_order_and_unknown_ones_are_passed_over() {
        let object = answer(5000)[PREFIX_BYTES..].to_vec();
        // Field 9, a varint; field 10, four bytes; field 11 of length 3; then the blob's own.
        let before = [&[0x48, 0x96, 1, 0x55, 1, 2, 3, 4, 0x5a, 3, b'a', b'b', b'c'][..]].concat();
        let message = [before, object].concat();
        let framed = [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat();
        assert!(
            read(&framed, 40, 100)
                .unwrap()
                .finish()
                .unwrap()
                .is_right(5000)
        );
    }

    #[test]
    fn what_is_not_one_whole_message_with_one_object_is_told() {
        let whole = answer(5000);
        let of = |bytes: &[u8]| read(bytes, 20, 1000).unwrap().finish().unwrap_err();
        assert_eq!(of(&whole[..whole.len() - 1]), "there is no whole message");
        assert_eq!(of(&whole[..3000]), "there is no whole message");
        let longer = [&whole[..], &[1, 2]].concat();
        assert!(of(&longer).ends_with("and 2 bytes after it"));
        let twice = [&whole[PREFIX_BYTES..], &whole[PREFIX_BYTES..]].concat();
        let twice = [&[0][..], &(twice.len() as u32).to_be_bytes(), &twice].concat();
        assert_eq!(of(&twice), "a message with two objects");
        let mut wrong = whole.clone();
        *wrong.last_mut().unwrap() = 0xff; // the timestamp does not end
        assert!(!of(&wrong).is_empty());
    }
}
