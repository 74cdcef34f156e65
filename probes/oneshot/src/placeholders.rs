//! Templates of requests that are texts or JSON, filled in for one request.
//!
//! `{key}`, `{seq}` (the request's number) and `{now}` (seconds since 1970) stand anywhere in a text;
//! in JSON a text that is `{seq}` or `{now}` and nothing else becomes a number, and one that is
//! `{body}` the object in base64. Any other brace is a brace.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::body;
use crate::clock;
use crate::plan::Request;

pub const BODY: &str = "{body}";
/// An object inside of JSON is held in memory, more than once.
pub const MAX_HELD_BYTES: u64 = 64 << 20;

pub struct Placeholders<'a> {
    request: &'a Request,
    now_s: u64,
    /// An object was put in: its SHA-256.
    pub object: Option<String>,
}

impl<'a> Placeholders<'a> {
    pub fn of(request: &'a Request) -> Self {
        Placeholders {
            request,
            now_s: clock::unix_s(),
            object: None,
        }
    }

    /// # Errors
    /// The plan's line has no value for a placeholder.
    pub fn text(&self, text: &str) -> Result<String, String> {
        let mut filled = text
            .replace("{seq}", &self.request.seq.to_string())
            .replace("{now}", &self.now_s.to_string());
        if filled.contains("{key}") {
            let key = self.request.key.as_deref();
            let key = key.ok_or_else(|| format!("{text:?} has a key, and the line has none"))?;
            filled = filled.replace("{key}", key);
        }
        Ok(filled)
    }

    /// # Errors
    /// As [`Placeholders::text`]; or the object is too large.
    pub fn json(&mut self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) if text == BODY => self.body()?.into(),
            Value::String(text) if text == "{seq}" => self.request.seq.into(),
            Value::String(text) if text == "{now}" => self.now_s.into(),
            Value::String(text) => self.text(text)?.into(),
            Value::Array(items) => {
                let filled = items.iter().map(|item| self.json(item));
                Value::Array(filled.collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => {
                let filled = fields
                    .iter()
                    .map(|(name, each)| Ok((name.clone(), self.json(each)?)));
                Value::Object(filled.collect::<Result<_, String>>()?)
            }
            other => other.clone(),
        })
    }

    fn body(&mut self) -> Result<String, String> {
        check_object(self.request)?;
        let (seed, bytes) = self.request.object();
        if bytes > MAX_HELD_BYTES {
            return Err(format!(
                "`object_bytes` is {bytes}, and an object in JSON has at most {MAX_HELD_BYTES}"
            ));
        }
        self.object = Some(body::sha256(seed, bytes));
        Ok(BASE64_STANDARD.encode(body::whole(seed, bytes)))
    }
}

/// # Errors
/// The plan's line does not say which object is sent.
pub fn check_object(request: &Request) -> Result<(), String> {
    match (request.body_seed, request.object_bytes) {
        (Some(_), Some(_)) => Ok(()),
        _ => Err("the request has {body}, and the line no `object_bytes` and `body_seed`".into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn placeholders_are_filled_in_wherever_they_stand_and_other_braces_stay() {
        let request = Request {
            seq: 7,
            key: Some("0aff".into()),
            object_bytes: Some(3),
            body_seed: Some(1),
            ..Request::default()
        };
        let mut values = Placeholders::of(&request);
        assert_eq!(values.text("/a/{key}?n={seq}").unwrap(), "/a/0aff?n=7");
        let object = body::whole(1, 3);
        let filled =
            values.json(&json!({"k": ["{key}", "{}"], "n": "{seq}", "b": "{body}", "t": true}));
        let base64 = BASE64_STANDARD.encode(&object);
        let expected = json!({"k": ["0aff", "{}"], "n": 7, "b": base64, "t": true});
        assert_eq!(filled.unwrap(), expected);
        assert_eq!(values.object, Some(body::sha256_of([&object[..]])));
    }

    #[test]
    fn a_placeholder_without_a_value_is_an_error() {
        let request = Request::default();
        assert!(
            Placeholders::of(&request)
                .text("{key}")
                .unwrap_err()
                .contains("the line has none")
        );
        assert!(Placeholders::of(&request).json(&json!("{body}")).is_err());
    }
}
