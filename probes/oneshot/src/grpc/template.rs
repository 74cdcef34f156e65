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
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor};
use serde_json::{Map, Value};

use crate::body::hex;

/// What placeholders stand for; None where the plan's line does not say.
pub struct Values<'a> {
    pub body: Option<&'a [u8]>,
    pub key: Option<&'a [u8]>,
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

/// Makes the message, an empty one where nothing is given. Err says which part of `request` does
/// not fit, and what would.
pub fn fill(
    descriptor: &MessageDescriptor,
    request: Option<&Value>,
    values: &Values<'_>,
) -> Result<Filled, String> {
    let mut filling = Filling {
        values,
        has_body: false,
    };
    let empty = Value::Object(Map::new());
    let kind = Kind::Message(descriptor.clone());
    let filled = filling.value(&kind, request.unwrap_or(&empty), "request")?;
    let message = DynamicMessage::deserialize(descriptor.clone(), filled)
        .map_err(|error| format!("`request` is no {}: {error}", descriptor.full_name()))?;
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
    /// Replaces placeholders, wherever they stand. Whether the rest fits is for who reads it.
    fn value(&mut self, kind: &Kind, json: &Value, at: &str) -> Result<Value, String> {
        match (kind, json) {
            (_, Value::Array(items)) => {
                let filled = items
                    .iter()
                    .enumerate()
                    .map(|(index, json)| self.value(kind, json, &format!("{at}[{index}]")));
                filled.collect()
            }
            (Kind::Message(descriptor), Value::Object(fields))
                if descriptor.package_name() != "google.protobuf" =>
            {
                let filled = fields.iter().map(|(name, json)| {
                    let at = format!("{at}.{name}");
                    let kind = if descriptor.is_map_entry() {
                        descriptor.map_entry_value_field().kind()
                    } else {
                        field_kind(descriptor, name, &at)?
                    };
                    Ok((name.clone(), self.value(&kind, json, &at)?))
                });
                filled.collect()
            }
            (kind, Value::String(text)) => self.placeholder(kind, text, at),
            _ => Ok(json.clone()),
        }
    }

    fn placeholder(&mut self, kind: &Kind, text: &str, at: &str) -> Result<Value, String> {
        let needs = |field: &str| format!("`{at}` is {text}, but the line has no {field}");
        let base64 = |bytes: &[u8]| Value::String(BASE64_STANDARD.encode(bytes));
        let key = || self.values.key.ok_or_else(|| needs("`key`"));
        let is_number = !matches!(
            kind,
            Kind::Bool | Kind::String | Kind::Bytes | Kind::Message(_) | Kind::Enum(_)
        );
        let number = |number: u64| match kind {
            Kind::String => number.to_string().into(),
            _ => number.into(),
        };
        Ok(match text {
            "{body}" if *kind == Kind::Bytes => {
                let body = self.values.body;
                let body = body.ok_or_else(|| needs("`object_bytes` and `body_seed`"))?;
                self.has_body = true;
                base64(body)
            }
            "{key}" if *kind == Kind::Bytes => base64(key()?),
            "{key}" if *kind == Kind::String => hex(key()?).into(),
            "{seq}" if is_number || *kind == Kind::String => number(self.values.seq),
            "{now}" if is_number || *kind == Kind::String => number(self.values.now_s),
            "{body}" | "{key}" | "{seq}" | "{now}" => {
                let fits = match text {
                    "{body}" => "bytes",
                    "{key}" => "bytes and string",
                    _ => "numbers and string",
                };
                return Err(format!(
                    "`{at}` is {text}, which does not fit a field of type {}; it fits {fits}",
                    format!("{kind:?}").to_lowercase()
                ));
            }
            other => other.into(),
        })
    }
}

fn field_kind(descriptor: &MessageDescriptor, name: &str, at: &str) -> Result<Kind, String> {
    let by_json_name = descriptor.get_field_by_json_name(name);
    let found = by_json_name.or_else(|| descriptor.get_field_by_name(name));
    found
        .map(|field| field.kind())
        .ok_or_else(|| unknown_field(descriptor, at))
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
