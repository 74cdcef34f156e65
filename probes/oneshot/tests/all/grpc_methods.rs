//! A method of somebody's own service, by its .proto file and a template; and what is refused.

use std::path::PathBuf;

use crate::common;
use crate::common::bob::BobServer;
use crate::common::http2::Script;
use crate::common::{KEY, Probe, assert_ok, assert_outcome, rows, with};
use oneshot::clock::unix_s;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage};
use serde_json::{Value, json};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn shapes() -> Value {
    let protos = folder("tests/protos");
    json!({"protos": [protos.join("shapes.proto")], "includes": [protos]})
}

fn bobs() -> Value {
    let bobs = folder("../../proto");
    json!({"protos": [bobs.join("bob.proto")], "includes": [bobs]})
}

fn pool() -> DescriptorPool {
    let mut compiler = protox::Compiler::new([folder("tests/protos")]).unwrap();
    compiler.open_file("shapes.proto").unwrap();
    compiler.descriptor_pool()
}

fn message(name: &str, json: Value) -> DynamicMessage {
    let descriptor = pool().get_message_by_name(name).unwrap();
    DynamicMessage::deserialize(descriptor, json).unwrap()
}

/// A shop that answers its one customer so, and returns the order.
fn shop(receipt: Value) -> Script<DynamicMessage> {
    Script::run(move |peers| {
        let mut peer = peers.next()?;
        peer.settings()?;
        let request = peer.expect_request()?;
        let receipt = message("wanlat.test.Receipt", receipt);
        peer.answer(request.stream, &receipt.encode_to_vec())?;
        let descriptor = pool().get_message_by_name("wanlat.test.Order").unwrap();
        Ok(DynamicMessage::decode(descriptor, &request.data[5..]).unwrap())
    })
}

fn body(bytes: u64) -> Vec<u8> {
    oneshot::body::whole(5, bytes)
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode(bytes)
}

#[test]
fn every_placeholder_is_filled_in_wherever_it_stands() {
    let server = shop(json!({"note": "thanks"}));
    let request = json!({
        "name": "{key}", "number": "{now}", "small": "{seq}", "urgent": true, "kind": "FANCY",
        "item": {"data": "{body}", "key": "{seq}", "at": {"seconds": "{now}"}},
        "more": [{"data": "{key}"}, {"key": "{now}"}, {"key": "a {key} b"}],
        "byName": {"{key}": {"data": "{body}"}}, "counts": {"x": "{seq}"},
        "keys": ["{key}", "AAEC"], "numbers": ["{seq}", 7], "hand": "{key}",
    });
    let before_s = unix_s();
    let mut probe = Probe::grpc(server.port, shapes());
    probe.seq = 9;
    let record = probe.call(
        "wanlat.test.Shop/Keep",
        json!({"key": KEY, "object_bytes": 1000, "body_seed": 5, "request": request}),
    );
    assert_ok(&record);
    assert_eq!(record["endpoint"], "wanlat.test.Shop/Keep");
    assert_eq!(record["object_bytes"], 1000);
    assert_eq!(record["sha256"], oneshot::body::sha256(5, 1000).as_str());

    let order = server.join();
    let number = order.get_field_by_name("number").unwrap().as_u64().unwrap();
    assert!((before_s..=unix_s()).contains(&number), "{number}");
    let now = number.to_string();
    let key = base64(&[0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0xff]);
    let data = base64(&body(1000));
    let expected = json!({
        "name": KEY, "number": now, "small": 9, "urgent": true, "kind": "FANCY",
        "item": {"data": data, "key": "9", "at": {"seconds": now}},
        "more": [{"data": key}, {"key": now}, {"key": "a {key} b"}],
        "byName": {"{key}": {"data": data}}, "counts": {"x": "9"},
        "keys": [key, "AAEC"], "numbers": [9, 7], "hand": key,
    });
    assert_eq!(serde_json::to_value(order).unwrap(), expected);
}

#[test]
fn a_request_without_a_template_is_an_empty_message() {
    let server = shop(json!({}));
    assert_ok(&Probe::grpc(server.port, shapes()).call("wanlat.test.Shop/Keep", json!({})));
    let order = server.join();
    assert_eq!(order, DynamicMessage::new(order.descriptor()));
}

#[test]
fn the_object_of_a_response_is_compared_with_the_body() {
    for (data, outcome, error) in [
        (body(1000), "ok", Value::Null),
        (
            body(999),
            "fail",
            json!("length mismatch: 999 bytes, not 1000"),
        ),
        (vec![0; 1000], "fail", json!("checksum mismatch")),
        (
            vec![],
            "fail",
            json!("not found: the answer has no `item.data`"),
        ),
    ] {
        // Of nothing there is not even the message that would hold it.
        let item = json!({"item": {"data": base64(&data)}});
        let server = shop(if data.is_empty() { json!({}) } else { item });
        let object = json!({"object_bytes": 1000, "body_seed": 5, "response_object": "item.data"});
        let record = Probe::grpc(server.port, shapes()).call("wanlat.test.Shop/Keep", object);
        assert_eq!(
            (&record["outcome"], &record["error"]),
            (&json!(outcome), &error)
        );
        assert_eq!(record["object_bytes"], data.len());
        let sha256 = oneshot::body::sha256_of([&data[..]]);
        let is_there = !data.is_empty();
        assert_eq!(record["sha256"].as_str(), is_there.then_some(&*sha256));
    }
}

#[test]
fn bobs_endpoints_are_methods_like_any_other() {
    let server = BobServer::well_behaved();
    let mut probe = Probe::grpc(server.port, bobs());
    let object = json!({"key": KEY, "object_bytes": 70_000, "body_seed": 5});
    let call = |probe: &mut Probe, method: &str, request: Value, more: Value| {
        let fields = with(object.clone(), json!({"request": request}));
        let fields = with(fields, more);
        probe.call(&format!("bob_storage.BobApi/{method}"), fields)
    };
    let put = json!({"key": {"key": "{key}"}, "data": {"data": "{body}", "meta": {"timestamp": "{now}"}}});
    assert_ok(&call(&mut probe, "Put", put, json!({})));
    // What one way of asking put, the other gets.
    assert_ok(&probe.get_blob(70_000));
    let get = json!({"key": {"key": "{key}"}});
    let whole = json!({"response_object": "data"});
    let record = call(&mut probe, "Get", get.clone(), whole);
    assert_ok(&record);
    assert_eq!(record["new_connection"], false);
    let other = json!({"response_object": "data", "body_seed": 6});
    let record = call(&mut probe, "Get", get, other);
    assert_outcome(&record, "fail", "checksum mismatch");
    assert_ok(&probe.call("bob_storage.BobApi/Ping", json!({})));
}

/// What `oneshot grpc` says to this header and line, which it must refuse.
fn refused(port: u16, header: Value, line: &Value) -> String {
    let first = json!({"host": "127.0.0.1", "port": port, "deadline_ms": 1000});
    let first = with(first, header);
    common::refused("grpc", &format!("{first}\n{line}\n"))
}

fn line(endpoint: &str, fields: Value) -> Value {
    let line = json!({"seq": 0, "phase": "measure", "endpoint": endpoint});
    with(line, fields)
}

#[test]
fn a_key_of_a_wrong_length_never_reaches_a_server() {
    let server = BobServer::well_behaved();
    for [endpoint, fields] in rows(
        r#"
        Put | {"key": "", "object_bytes": 1, "body_seed": 1}
        Get | {"key": "00112233445566"}
        Exist | {"key": "00112233445566ff00"}
        Delete | {"key": "00"}
        bob_storage.BobApi/Put | {"request": {"key": {"key": "AAECAwQFBg=="}}}
        bob_storage.BobApi/Get | {"request": {"key": {"key": "AAECAwQFBgcI"}}}
        bob_storage.BobApi/Get | {"key": "0011", "request": {"key": {"key": "{key}"}}}
        bob_storage.BobApi/Delete | {"request": {"key": {}}}
        bob_storage.BobApi/Exist | {"request": {"keys": [{"key": "AAECAwQFBgc="}, {}]}}
        "#,
    ) {
        let line = line(endpoint, serde_json::from_str(fields).unwrap());
        let error = refused(server.port, bobs(), &line);
        assert!(error.contains("plan line 2: a key is "), "{line}: {error}");
        assert!(error.contains("but Bob's keys are 8"), "{error}");
    }
    assert_eq!(server.reached(), []);
    // And with keys of the right length such a line is sent.
    let mut probe = Probe::grpc(server.port, bobs());
    let right = json!({"key": "{key}"});
    let exist = json!({"key": KEY, "request": {"keys": [right, right]}});
    assert_ok(&probe.call("bob_storage.BobApi/Exist", exist));
    assert_eq!(server.reached()[0].keys.len(), 2);
}

#[test]
fn somebody_elses_proto_file_gets_no_wrong_key_past_either() {
    // Bob's service, under other names of messages.
    let folder = std::env::temp_dir().join(format!("oneshot-own-bob-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let own = folder.join("own.proto");
    std::fs::write(
        &own,
        "syntax = \"proto3\"; package bob_storage; message K { bytes k = 1; } \
         message Ask { K key = 1; } message Reply {} \
         service BobApi { rpc Get(Ask) returns (Reply); }",
    )
    .unwrap();
    let server = BobServer::well_behaved();
    let request = json!({"request": {"key": {"k": "AAEC"}}});
    let asked = line("bob_storage.BobApi/Get", request);
    let error = refused(server.port, json!({"protos": [own]}), &asked);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(error.contains("a key is 3 bytes long"), "{error}");
    assert_eq!(server.reached(), []);
}

#[test]
fn what_does_not_fit_its_method_is_told_with_what_there_is() {
    let object = r#""object_bytes": 1, "body_seed": 1"#;
    for [method, fields, expected] in rows(
        r#"
        Shop/Watch | | wanlat.test.Shop/Watch cannot be measured: the server streams
        Shop/Fill | | wanlat.test.Shop/Fill cannot be measured: the client streams
        Shop/Talk | | wanlat.test.Shop/Talk cannot be measured: both sides stream
        Shop/Buy | | no method Buy in wanlat.test.Shop: it has Keep, Watch, Fill, Talk
        Mall/Buy | | no service wanlat.test.Mall: the header's `protos` define wanlat.test.Shop
        Shop/Keep | "request": {"colour": 1} | `request.colour`: wanlat.test.Order has no such field
        Shop/Keep | "request": {"item": {"datum": "{body}"}} | `request.item.datum`: wanlat.test.Item
        Shop/Keep | "request": {"urgent": "{seq}"} | {seq}, which does not fit a field of type bool
        Shop/Keep | "request": {"more": [{}, {"key": "{body}"}]} | `request.more[1].key` is {body}
        Shop/Keep | "request": {"item": {"data": "{body}"}} | no `object_bytes` and `body_seed`
        Shop/Keep | "request": {"name": "{key}"} | `request.name` is {key}, but the line has no `key`
        Shop/Keep | "request": {"item": 5} | `request` is no wanlat.test.Order:
        Shop/Keep | "request": [1] | `request` is no wanlat.test.Order:
        Shop/Keep | "request": {"kind": "ODD"} | `request` is no wanlat.test.Order:
        Shop/Keep | OBJECT, "response_object": "item" | `response_object.item` is no bytes field
        Shop/Keep | OBJECT, "response_object": "item.datum" | wanlat.test.Item has no such field
        Shop/Keep | OBJECT, "response_object": "items.data" | `response_object.items` is repeated
        Shop/Keep | OBJECT, "response_object": "note.data" | `response_object.note` is no message
        Shop/Keep | "response_object": "item.data" | needs `object_bytes` and `body_seed`
        Shop/Keep | "key": "xyz" | `key` must be hexadecimal digits, two a byte: "xyz"
        Shop/Keep | "exists": true | `exists` means nothing to wanlat.test.Shop/Keep
        "#,
    ) {
        let fields = format!("{{{}}}", fields.replace("OBJECT", object));
        let fields = serde_json::from_str(&fields).unwrap();
        let line = line(&format!("wanlat.test.{method}"), fields);
        let error = refused(1, shapes(), &line);
        assert!(error.starts_with("oneshot: plan line 2: "), "{error}");
        assert!(error.contains(expected), "{line} gave {error}");
    }
}

#[test]
fn bobs_endpoints_say_what_they_need() {
    for [endpoint, fields, expected] in rows(
        r#"
        Put | {"key": "0011223344556677", "object_bytes": 1} | Put needs `body_seed`
        Get | {} | Get needs `key`
        Get | {"key": "0011223344556677", "body_seed": 1} | `body_seed` without `object_bytes`
        Get | {"key": "0011223344556677", "exists": true} | `exists` means nothing to Get
        Ping | {"key": "0011223344556677"} | `key` means nothing to Ping
        Exist | {"key": "001122334455667"} | `key` must be hexadecimal digits
        GetObject | {} | unknown endpoint `GetObject`, expected one of Put, Get, Exist, Delete, Ping,
        bob_storage.BobApi/Ping | {} | the header's `protos` define none. Name the .proto file
        "#,
    ) {
        let line = line(endpoint, serde_json::from_str(fields).unwrap());
        let error = refused(1, json!({}), &line);
        assert!(error.contains(expected), "{line} gave {error}");
    }
}

#[test]
fn a_header_that_is_of_no_use_is_refused_before_anything_is_sent() {
    let folder = folder("tests/protos").display().to_string();
    for [header, expected] in rows(
        r#"
        {"protos": ["FOLDER/missing.proto"]} | missing.proto
        {"protos": ["FOLDER/broken.txt"]} | broken.txt:4:
        {"max_message_bytes": 0} | `max_message_bytes` is 0, which is not from 1 to
        {"max_message_bytes": 2147483648} | not from 1 to 1073741824
        {"deadline_ms": 0} | `deadline_ms` is 0
        {"window": "huge"} | unknown variant `huge`
        {"metadata": {"grpc-timeout": "1S"}} | "grpc-timeout" is the protocol's own
        {"metadata": {"TE": "x"}} | "TE" is the protocol's own
        {"metadata": {"a b": "x"}} | "a b" is no header's name
        {"metadata": {"a": "x\ny"}} | the value of "a" must be printable ASCII
        {"retries": 3} | unknown field `retries`
        {"host": "not a host"} | host "not a host"
        "#,
    ) {
        let header: Value = serde_json::from_str(&header.replace("FOLDER", &folder)).unwrap();
        let error = refused(1, header.clone(), &line("Ping", json!({})));
        assert!(error.starts_with("oneshot: plan line 1: "), "{error}");
        assert!(error.contains(expected), "{header} gave {error}");
    }
}
