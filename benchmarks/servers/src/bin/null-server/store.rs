//! What the null server answers when it behaves.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use crate::request::Request;

/// A response before it has a framing.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub body: Arc<[u8]>,
    /// To HEAD: the Content-Length is the body's, but no body follows.
    pub head_only: bool,
}

impl Reply {
    pub fn new(status: u16, body: impl Into<Arc<[u8]>>) -> Self {
        Reply {
            status,
            body: body.into(),
            head_only: false,
        }
    }

    pub fn error(status: u16, code: &str) -> Self {
        let document = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
             <Message>as ordered</Message></Error>"
        );
        Reply::new(status, document.into_bytes())
    }
}

/// Buckets and objects, or the pretence of them.
pub enum Store {
    /// Every object exists, with these bytes; every write is acknowledged and forgotten.
    Canned(Arc<[u8]>),
    /// What is put is kept, by `/bucket/key`; a bucket is the key `/bucket`.
    Memory(Mutex<BTreeMap<String, Arc<[u8]>>>),
}

impl Store {
    pub fn memory() -> Self {
        Store::Memory(Mutex::new(BTreeMap::new()))
    }

    pub fn reply(&self, request: &Request) -> Reply {
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        let is_object = path[1..].contains('/');
        let reply = match request.method.as_str() {
            "GET" if path == "/" => Reply::new(200, self.buckets()),
            "GET" if !is_object => self.objects(path, query),
            "GET" | "HEAD" => self.get(path),
            "PUT" => self.put(path, is_object, &request.body),
            "DELETE" => self.remove(path),
            _ => Reply::error(501, "NotImplemented"),
        };
        Reply {
            head_only: request.method == "HEAD",
            ..reply
        }
    }

    fn get(&self, path: &str) -> Reply {
        match self {
            Store::Canned(object) => Reply::new(200, object.clone()),
            Store::Memory(objects) => match objects.lock().unwrap().get(path) {
                Some(object) => Reply::new(200, object.clone()),
                None => Reply::error(404, "NoSuchKey"),
            },
        }
    }

    fn put(&self, path: &str, is_object: bool, body: &[u8]) -> Reply {
        if let Store::Memory(objects) = self {
            let mut objects = objects.lock().unwrap();
            let bucket = &path[..path[1..].find('/').map_or(path.len(), |at| at + 1)];
            if is_object && !objects.contains_key(bucket) {
                return Reply::error(404, "NoSuchBucket");
            }
            if !is_object && objects.contains_key(bucket) {
                return Reply::error(409, "BucketAlreadyOwnedByYou");
            }
            objects.insert(path.to_owned(), body.into());
        }
        Reply::new(200, [])
    }

    fn remove(&self, path: &str) -> Reply {
        if let Store::Memory(objects) = self {
            objects.lock().unwrap().remove(path);
        }
        Reply::new(204, [])
    }

    fn buckets(&self) -> Vec<u8> {
        let names: Vec<String> = match self {
            Store::Canned(_) => vec!["null".to_owned()],
            Store::Memory(objects) => {
                let objects = objects.lock().unwrap();
                let is_bucket = |path: &&String| !path[1..].contains('/');
                objects
                    .keys()
                    .filter(is_bucket)
                    .map(|path| path[1..].to_owned())
                    .collect()
            }
        };
        let buckets = names.iter().fold(String::new(), |mut text, name| {
            let _ = write!(text, "<Bucket><Name>{name}</Name></Bucket>");
            text
        });
        document(
            "ListAllMyBucketsResult",
            &format!("<Buckets>{buckets}</Buckets>"),
        )
    }

    fn objects(&self, bucket: &str, query: &str) -> Reply {
        let prefix = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("prefix="));
        let prefix = prefix.unwrap_or_default().replace("%2F", "/");
        let keys: Vec<String> = match self {
            Store::Canned(_) => (0..10).map(|i| format!("{prefix}{i:04}")).collect(),
            Store::Memory(objects) => {
                let start = format!("{bucket}/");
                let objects = objects.lock().unwrap();
                objects
                    .keys()
                    .filter_map(|path| path.strip_prefix(&start))
                    .filter(|key| key.starts_with(&prefix))
                    .map(str::to_owned)
                    .collect()
            }
        };
        let contents = keys.iter().fold(String::new(), |mut text, key| {
            let _ = write!(text, "<Contents><Key>{key}</Key></Contents>");
            text
        });
        Reply::new(200, document("ListBucketResult", &contents))
    }
}

fn document(root: &str, content: &str) -> Vec<u8> {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <{root} xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{content}</{root}>"
    )
    .into_bytes()
}
