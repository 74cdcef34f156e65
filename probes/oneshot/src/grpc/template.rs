//! A method's request: the plan's JSON, with its placeholders replaced, as the method's message.
//!
//! | placeholder | in a bytes field | in a string field | in a number field |
//! | --- | --- | --- | --- |
//! | `{body}` | the body | | |
//! | `{key}` | the key's bytes | the key in hexadecimal digits | |
//! | `{seq}` | | the request's number | the request's number |
//! | `{now}` | | seconds since 1970 | seconds since 1970 |
//!
//! Only a string that is exactly a placeholder is one. Inside of the well-known types
//! (google.protobuf) there are none.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value as Field,
};
use serde_json::{Map, Value};

use crate::grpc::bob;

/// What placeholders stand for; None where the plan's line does not say.
pub struct Values<'a> {
    pub body: Option<&'a [u8]>,
    pub key: Option<&'a [u8]>,
    pub key_hex: Option<&'a str>,
    pub seq: u64,
    pub now_s: u64,
}

/// A request.
#[derive(Debug)]
pub struct Filled {
    pub message: DynamicMessage,
    /// It holds the body.
    pub has_body: bool,
}

/// Makes the message. Err says which part of `request` does not fit, and what would.
pub fn fill(
    descriptor: &MessageDescriptor,
    request: &Value,
    values: &Values<'_>,
) -> Result<Filled, String> {
    let mut filling = Filling {
        values,
        has_body: false,
    };
    let filled = filling.message(descriptor, request, "request")?;
    let message = DynamicMessage::deserialize(descriptor.clone(), filled)
        .map_err(|error| format!("`request` is no {}: {error}", descriptor.full_name()))?;
    if let Some(bytes) = wrong_key(&message) {
        return Err(bob::wrong_key_error(bytes));
    }
    Ok(Filled {
        message,
        has_body: filling.has_body,
    })
}

struct Filling<'a> {
    values: &'a Values<'a>,
    has_body: bool,
}

impl Filling<'_> {
    fn message(
        &mut self,
        descriptor: &MessageDescriptor,
        json: &Value,
        at: &str,
    ) -> Result<Value, String> {
        if descriptor.package_name() == "google.protobuf" {
            return Ok(json.clone());
        }
        let Value::Object(fields) = json else {
            return Err(format!(
                "`{at}` is {}, but {} is an object",
                kind_of(json),
                descriptor.full_name()
            ));
        };
        let mut filled = Map::new();
        for (name, json) in fields {
            let field = descriptor
                .get_field_by_json_name(name)
                .or_else(|| descriptor.get_field_by_name(name))
                .ok_or_else(|| unknown_field(descriptor, &format!("{at}.{name}")))?;
            let value = self.field(&field, json, &format!("{at}.{name}"))?;
            filled.insert(name.clone(), value);
        }
        Ok(Value::Object(filled))
    }

    fn field(&mut self, field: &FieldDescriptor, json: &Value, at: &str) -> Result<Value, String> {
        match json {
            Value::Object(entries) if field.is_map() => {
                let Kind::Message(entry) = field.kind() else {
                    unreachable!("a map's entries are messages")
                };
                let kind = entry.map_entry_value_field().kind();
                let filled = entries.iter().map(|(name, json)| {
                    let value = self.one(&kind, json, &format!("{at}.{name}"))?;
                    Ok((name.clone(), value))
                });
                filled
                    .collect::<Result<Map<_, _>, String>>()
                    .map(Value::Object)
            }
            Value::Array(items) if field.is_list() => {
                let filled = items
                    .iter()
                    .enumerate()
                    .map(|(index, json)| self.one(&field.kind(), json, &format!("{at}[{index}]")));
                filled.collect::<Result<Vec<_>, String>>().map(Value::Array)
            }
            Value::Null => Ok(Value::Null),
            _ if field.is_map() => Err(format!(
                "`{at}` is {}, but the field is a map",
                kind_of(json)
            )),
            _ if field.is_list() => Err(format!(
                "`{at}` is {}, but the field is a list",
                kind_of(json)
            )),
            _ => self.one(&field.kind(), json, at),
        }
    }

    fn one(&mut self, kind: &Kind, json: &Value, at: &str) -> Result<Value, String> {
        match (kind, json) {
            (Kind::Message(descriptor), json) => self.message(descriptor, json, at),
            (kind, Value::String(text)) if is_placeholder(text) => self.placeholder(kind, text, at),
            _ => Ok(json.clone()),
        }
    }

    fn placeholder(&mut self, kind: &Kind, text: &str, at: &str) -> Result<Value, String> {
        let needs = |field: &str| format!("`{at}` is {text}, but the line has no {field}");
        let base64 = |bytes: &[u8]| Value::String(BASE64_STANDARD.encode(bytes));
        match (text, kind) {
            ("{body}", Kind::Bytes) => {
                self.has_body = true;
                let body = self.values.body;
                Ok(base64(
                    body.ok_or_else(|| needs("`object_bytes` and `body_seed`"))?,
                ))
            }
            ("{key}", Kind::Bytes) => Ok(base64(self.values.key.ok_or_else(|| needs("`key`"))?)),
            ("{key}", Kind::String) => {
                let hex = self.values.key_hex.ok_or_else(|| needs("`key`"))?;
                Ok(hex.into())
            }
            ("{seq}", kind) if is_number(kind) => Ok(self.values.seq.into()),
            ("{now}", kind) if is_number(kind) => Ok(self.values.now_s.into()),
            ("{seq}", Kind::String) => Ok(self.values.seq.to_string().into()),
            ("{now}", Kind::String) => Ok(self.values.now_s.to_string().into()),
            (_, kind) => Err(format!(
                "`{at}` is {text}, which does not fit a field of type {}; {}",
                name_of(kind),
                match text {
                    "{body}" => "it fits bytes",
                    "{key}" => "it fits bytes and string",
                    _ => "it fits numbers and string",
                }
            )),
        }
    }
}

fn is_placeholder(text: &str) -> bool {
    matches!(text, "{body}" | "{key}" | "{seq}" | "{now}")
}

fn is_number(kind: &Kind) -> bool {
    !matches!(
        kind,
        Kind::Bool | Kind::String | Kind::Bytes | Kind::Message(_) | Kind::Enum(_)
    )
}

fn name_of(kind: &Kind) -> String {
    match kind {
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(kind) => kind.full_name().to_owned(),
        scalar => format!("{scalar:?}").to_lowercase(),
    }
}

fn kind_of(json: &Value) -> &'static str {
    match json {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Says that a field is not there, and which are.
pub fn unknown_field(descriptor: &MessageDescriptor, at: &str) -> String {
    let known: Vec<String> = descriptor.fields().map(|it| it.name().to_owned()).collect();
    let name = descriptor.full_name();
    if known.is_empty() {
        return format!("`{at}`: {name} has no fields");
    }
    format!(
        "`{at}`: {name} has no such field, it has {}",
        known.join(", ")
    )
}

/// The length of a key of Bob's, anywhere in the message, that Bob would not survive.
fn wrong_key(message: &DynamicMessage) -> Option<usize> {
    if message.descriptor().full_name() == bob::KEY_MESSAGE {
        let key = message.get_field_by_name("key");
        let bytes = key.and_then(|key| key.as_bytes().map(|bytes| bytes.len()));
        return bytes.filter(|bytes| *bytes != bob::KEY_BYTES);
    }
    message.fields().find_map(|(_, field)| wrong_key_in(field))
}

fn wrong_key_in(field: &Field) -> Option<usize> {
    match field {
        Field::Message(message) => wrong_key(message),
        Field::List(items) => items.iter().find_map(wrong_key_in),
        Field::Map(entries) => entries.values().find_map(wrong_key_in),
        _ => None,
    }
}
