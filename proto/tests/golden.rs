//! Every message against bytes that were written by hand from the interface's facts (names, field
//! numbers, types), so that a slip in bob.proto cannot pass unseen.
//!
//! How the bytes are made (protobuf's encoding): a field is a tag, which is its number × 8 + its wire
//! type, and a value. Wire type 0 is a varint (numbers, booleans, enumerations), 2 is a length and as
//! many bytes (bytes, strings, messages, packed lists of numbers). So field 1 is 08 as a varint and
//! 0a with a length; field 2 is 10 and 12; field 3 is 18 and 1a. Fields with their type's zero are
//! left out.

use std::fmt::Debug;

use prost::Message;
use prost::bytes::Bytes;
use wanlat_proto::bob_storage::{
    Blob, BlobKey, BlobMeta, BobError, DeleteOptions, DeleteRequest, ExistRequest, ExistResponse,
    GetOptions, GetRequest, GetSource, Null, OpStatus, PutOptions, PutRequest,
};

/// The message is these bytes, and these bytes are the message.
#[track_caller]
fn golden<M: Message + Default + PartialEq + Debug>(message: M, hex: &str) {
    let digits: String = hex.split_whitespace().collect();
    let bytes: Vec<u8> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect();
    assert_eq!(message.encode_to_vec(), bytes, "{message:?} is written");
    assert_eq!(
        M::decode(bytes.as_slice()).unwrap(),
        message,
        "{hex} is read"
    );
}

fn key() -> Option<BlobKey> {
    Some(BlobKey {
        key: Bytes::from_static(&[1, 2, 3, 4, 5, 6, 7, 8]),
    })
}

#[test]
fn null_is_nothing() {
    golden(Null {}, "");
}

#[test]
fn blob_key() {
    // Field 1, 8 bytes.
    golden(key().unwrap(), "0a 08 01 02 03 04 05 06 07 08");
}

#[test]
fn blob_meta() {
    // Field 1 as a varint: 300 is 2 × 128 + 44, so ac (44, and more follows), 02.
    golden(BlobMeta { timestamp: 300 }, "08 ac 02");
    // All 64 bits: nine groups of seven ones, and the last one.
    golden(
        BlobMeta {
            timestamp: u64::MAX,
        },
        "08 ff ff ff ff ff ff ff ff ff 01",
    );
}

#[test]
fn blob() {
    let blob = Blob {
        data: Bytes::from_static(b"abc"),
        meta: Some(BlobMeta { timestamp: 5 }),
    };
    // Field 1: 3 bytes. Field 2: 2 bytes, which are field 1 with 5.
    golden(blob, "0a 03 61 62 63  12 02 08 05");
}

#[test]
fn bob_error() {
    let error = BobError {
        code: 7,
        desc: "no".into(),
    };
    // Field 1: 7. Field 2: 2 bytes.
    golden(error, "08 07  12 02 6e 6f");
    // A negative int32 is written with all 64 bits of its sign.
    let negative = BobError {
        code: -1,
        desc: String::new(),
    };
    golden(negative, "08 ff ff ff ff ff ff ff ff ff 01");
}

#[test]
fn op_status() {
    golden(OpStatus { error: None }, "");
    let error = Some(BobError {
        code: 7,
        desc: "no".into(),
    });
    // Field 1: 6 bytes, the error.
    golden(OpStatus { error }, "0a 06  08 07 12 02 6e 6f");
}

#[test]
fn put_options() {
    let options = PutOptions {
        remote_nodes: vec!["a".into(), "b".into()],
        force_node: true,
        overwrite: true,
    };
    // Field 1 twice, a byte each. Field 2: 1. Field 3: 1.
    golden(options, "0a 01 61  0a 01 62  10 01  18 01");
}

#[test]
fn put_request() {
    let request = PutRequest {
        key: key(),
        data: Some(Blob {
            data: Bytes::from_static(b"abc"),
            meta: Some(BlobMeta { timestamp: 5 }),
        }),
        options: Some(PutOptions {
            overwrite: true,
            ..PutOptions::default()
        }),
    };
    // Field 1: 10 bytes, the key. Field 2: 9 bytes, the blob. Field 3: 2 bytes, the options.
    golden(
        request,
        "0a 0a  0a 08 01 02 03 04 05 06 07 08
         12 09  0a 03 61 62 63 12 02 08 05
         1a 02  18 01",
    );
}

#[test]
fn get_source_has_bobs_numbers() {
    let numbers = [GetSource::All, GetSource::Normal, GetSource::Alien].map(|it| it as i32);
    assert_eq!(numbers, [0, 1, 2]);
    let names = [0, 1, 2].map(|number| GetSource::try_from(number).unwrap().as_str_name());
    assert_eq!(names, ["ALL", "NORMAL", "ALIEN"]);
}

#[test]
fn get_options() {
    let options = GetOptions {
        force_node: true,
        source: GetSource::Alien as i32,
    };
    // Field 1: 1. Field 2: 2.
    golden(options, "08 01  10 02");
}

#[test]
fn get_request() {
    let request = GetRequest {
        key: key(),
        options: Some(GetOptions {
            force_node: false,
            source: GetSource::Normal as i32,
        }),
    };
    // Field 1: 10 bytes, the key. Field 2: 2 bytes, the options.
    golden(
        request,
        "0a 0a  0a 08 01 02 03 04 05 06 07 08
         12 02  10 01",
    );
}

#[test]
fn exist_request() {
    let request = ExistRequest {
        keys: vec![
            key().unwrap(),
            BlobKey {
                key: Bytes::from_static(&[9; 8]),
            },
        ],
        options: Some(GetOptions {
            force_node: true,
            source: 0,
        }),
    };
    // Field 1 for each key, 10 bytes each. Field 2: 2 bytes, the options.
    golden(
        request,
        "0a 0a  0a 08 01 02 03 04 05 06 07 08
         0a 0a  0a 08 09 09 09 09 09 09 09 09
         12 02  08 01",
    );
}

#[test]
fn exist_response() {
    let response = ExistResponse {
        exist: vec![true, false, true],
    };
    // Field 1, packed as proto3 does: 3 bytes, a varint each.
    golden(response, "0a 03 01 00 01");
    // Whoever does not pack is understood too.
    let unpacked = [0x08, 1, 0x08, 0];
    assert_eq!(
        ExistResponse::decode(&unpacked[..]).unwrap().exist,
        [true, false]
    );
}

#[test]
fn delete_options() {
    let options = DeleteOptions {
        force_alien_nodes: vec!["a".into()],
        force_node: true,
        is_alien: true,
    };
    // Field 1: a byte. Field 2: 1. Field 3: 1.
    golden(options, "0a 01 61  10 01  18 01");
}

#[test]
fn delete_request() {
    let request = DeleteRequest {
        key: key(),
        meta: Some(BlobMeta { timestamp: 5 }),
        options: Some(DeleteOptions {
            force_node: true,
            ..DeleteOptions::default()
        }),
    };
    // Field 1: 10 bytes, the key. Field 2: 2 bytes, the time. Field 3: 2 bytes, the options.
    golden(
        request,
        "0a 0a  0a 08 01 02 03 04 05 06 07 08
         12 02  08 05
         1a 02  10 01",
    );
}

#[test]
fn a_field_that_is_not_in_the_file_is_passed_over() {
    // Field 15 as a varint, tag 78: what a newer Bob may add.
    let bytes = [0x08, 5, 0x78, 1];
    let meta = BlobMeta::decode(&bytes[..]).unwrap();
    assert_eq!(meta.timestamp, 5);
}
