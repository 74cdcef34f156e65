//! A blocking S3 client of one connection: signs, sends, reads, hides nothing. Its objects are in one
//! bucket. It signs as the probe does, whose signatures are held to AWS's.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HeaderName;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use oneshot::body::sha256_of;
use oneshot::s3::sign::Signer;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::{PATIENCE, runtime};

pub const ACCESS_KEY: &str = "test-access";
pub const SECRET_KEY: &str = "test-secret";
pub const BUCKET: &str = "/bucket";

pub struct Client {
    address: SocketAddr,
    secret_key: String,
    runtime: Runtime,
    connection: SendRequest<Full<Bytes>>,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    headers: HeaderMap,
    pub body: Bytes,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The count of sequential majority rounds.
    pub fn rounds(&self) -> u32 {
        let rounds = self.header("x-quorum-rounds");
        rounds
            .expect("every response counts its rounds")
            .parse()
            .unwrap()
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// The texts of all XML elements of this name, in order.
    pub fn elements(&self, name: &str) -> Vec<String> {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let text = self.text();
        let parts = text.split(&open).skip(1);
        let inner = parts.filter_map(|part| part.split_once(&close).map(|(inner, _)| inner));
        inner.map(str::to_owned).collect()
    }
}

impl Client {
    pub fn new(address: SocketAddr, secret_key: &str) -> Self {
        let runtime = runtime();
        let connection = runtime.block_on(async {
            let socket = TcpStream::connect(address).await.expect("the node listens");
            socket.set_nodelay(true).unwrap();
            let (sender, connection) = handshake(TokioIo::new(socket)).await.unwrap();
            tokio::spawn(connection);
            sender
        });
        Self {
            address,
            secret_key: secret_key.to_owned(),
            runtime,
            connection,
        }
    }

    pub fn create_bucket(&mut self) -> Response {
        self.send("PUT", BUCKET, &[], b"")
    }

    pub fn delete_bucket(&mut self) -> Response {
        self.send("DELETE", BUCKET, &[], b"")
    }

    pub fn head_bucket(&mut self) -> Response {
        self.send("HEAD", BUCKET, &[], b"")
    }

    pub fn list_buckets(&mut self) -> Response {
        self.send("GET", "/", &[], b"")
    }

    pub fn list(&mut self) -> Response {
        self.list_with("")
    }

    /// `parameters` begin with an ampersand.
    pub fn list_with(&mut self, parameters: &str) -> Response {
        self.send(
            "GET",
            &format!("{BUCKET}?list-type=2{parameters}"),
            &[],
            b"",
        )
    }

    pub fn put(&mut self, key: &str, body: &[u8]) -> Response {
        self.send("PUT", &format!("{BUCKET}/{key}"), &[], body)
    }

    pub fn get(&mut self, key: &str) -> Response {
        self.send("GET", &format!("{BUCKET}/{key}"), &[], b"")
    }

    pub fn head(&mut self, key: &str) -> Response {
        self.send("HEAD", &format!("{BUCKET}/{key}"), &[], b"")
    }

    pub fn delete(&mut self, key: &str) -> Response {
        self.send("DELETE", &format!("{BUCKET}/{key}"), &[], b"")
    }

    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let request = self.signed(method, path, headers, body);
        self.exchange(request, body)
    }

    /// Without a signature.
    pub fn unsigned(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("host", self.address.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    pub fn signed(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Request<()> {
        let host = self.address.to_string();
        let hash = sha256_of([body]);
        let mut signer = Signer::new(ACCESS_KEY, &self.secret_key, "wanlat", &host);
        let mut lines = Vec::new();
        signer.write_headers(method, &in_order(path), &[], &hash, &mut lines);

        let mut request = self.unsigned(method, path, headers);
        for line in String::from_utf8(lines).unwrap().lines() {
            let (name, value) = line.split_once(": ").unwrap();
            let name: HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        request
    }

    pub fn exchange(&mut self, request: Request<()>, body: &[u8]) -> Response {
        let mut request = request.map(|()| Full::new(Bytes::copy_from_slice(body)));
        request
            .headers_mut()
            .insert("content-length", body.len().into());
        let exchanged = async {
            self.connection.ready().await.unwrap();
            let response = self.connection.send_request(request).await;
            let (parts, body) = response.expect("the node answers").into_parts();
            Response {
                status: parts.status.as_u16(),
                headers: parts.headers,
                body: body.collect().await.unwrap().to_bytes(),
            }
        };
        let within = async { timeout(PATIENCE, exchanged).await };
        self.runtime.block_on(within).expect("nothing hangs")
    }
}

/// Parameters are signed in order.
fn in_order(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let mut parameters: Vec<&str> = query.split('&').collect();
    parameters.sort_unstable();
    format!("{path}?{}", parameters.join("&"))
}
