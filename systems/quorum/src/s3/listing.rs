//! ListObjectsV2, in and out. Listings are flat: keys are not grouped into common prefixes.

use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::values::{etag, modified};
use crate::listing::Listing;
use crate::store::{Listed, Query};

const MAX_KEYS: i32 = 1000;

/// The token of a page is its last key, in hexadecimal so that no client or proxy can mangle it.
pub fn query(input: &ListObjectsV2Input) -> S3Result<Query> {
    let after = match &input.continuation_token {
        Some(token) => Some(
            decode_token(token)
                .ok_or_else(|| s3_error!(InvalidArgument, "an unknown continuation token"))?,
        ),
        None => input.start_after.clone(),
    };
    let max_keys = input.max_keys.unwrap_or(MAX_KEYS).min(MAX_KEYS);
    let limit = usize::try_from(max_keys)
        .map_err(|_| s3_error!(InvalidArgument, "max-keys is negative"))?;
    Ok(Query {
        prefix: input.prefix.clone().unwrap_or_default(),
        after,
        limit,
    })
}

/// # Errors
/// `NotImplemented` where the client's delimiter would group keys.
pub fn output(input: ListObjectsV2Input, listing: Listing) -> S3Result<ListObjectsV2Output> {
    let prefix = input.prefix.unwrap_or_default();
    let delimiter = input.delimiter.as_deref().filter(|it| !it.is_empty());
    let grouped = |listed: &Listed| {
        let rest = listed.key.strip_prefix(&prefix);
        rest.zip(delimiter)
            .is_some_and(|(rest, it)| rest.contains(it))
    };
    if listing.objects.iter().any(grouped) {
        return Err(s3_error!(
            NotImplemented,
            "this store does not group keys: list them without a delimiter (recursively)"
        ));
    }
    Ok(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(prefix),
        start_after: input.start_after,
        max_keys: Some(input.max_keys.unwrap_or(MAX_KEYS)),
        key_count: Some(listing.objects.len() as i32),
        continuation_token: input.continuation_token,
        is_truncated: Some(listing.next.is_some()),
        next_continuation_token: listing.next.as_deref().map(encode_token),
        contents: Some(listing.objects.into_iter().filter_map(object).collect()),
        ..Default::default()
    })
}

fn object(listed: Listed) -> Option<Object> {
    let summary = listed.object?;
    Some(Object {
        key: Some(listed.key),
        size: Some(summary.size as i64),
        e_tag: Some(etag(&summary.md5)),
        last_modified: Some(modified(listed.version)),
        ..Default::default()
    })
}

fn encode_token(key: &str) -> String {
    key.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn decode_token(token: &str) -> Option<String> {
    let byte = |at| u8::from_str_radix(token.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..token.len()).step_by(2).map(byte).collect();
    String::from_utf8(bytes?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was_given_and_another_is_refused() {
        let key = "ключ/1".to_owned();
        assert_eq!(decode_token(&encode_token(&key)), Some(key));
        for token in ["x", "0", "zz", "ffffff", "é"] {
            assert_eq!(decode_token(token), None, "{token}");
        }
    }
}
