//! A blocking S3 client of one connection: signs, sends, reads, hides nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

pub const ACCESS_KEY: &str = "test-access";
pub const SECRET_KEY: &str = "test-secret";
const REGION: &str = "wanlat";
/// No request of these tests takes longer unless something hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Client {
    address: SocketAddr,
    secret_key: String,
    connection: BufReader<TcpStream>,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The count of sequential majority rounds.
    pub fn rounds(&self) -> u32 {
        let rounds = self
            .header("x-quorum-rounds")
            .expect("every response counts its rounds");
        rounds.parse().unwrap()
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
    pub fn new(address: SocketAddr) -> Self {
        Self::with_secret(address, SECRET_KEY)
    }

    pub fn with_secret(address: SocketAddr, secret_key: &str) -> Self {
        let socket = TcpStream::connect(address).expect("the node listens");
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self {
            address,
            secret_key: secret_key.to_owned(),
            connection: BufReader::new(socket),
        }
    }

    pub fn create_bucket(&mut self, bucket: &str) -> Response {
        self.send("PUT", &format!("/{bucket}"), "", b"")
    }

    pub fn delete_bucket(&mut self, bucket: &str) -> Response {
        self.send("DELETE", &format!("/{bucket}"), "", b"")
    }

    pub fn head_bucket(&mut self, bucket: &str) -> Response {
        self.send("HEAD", &format!("/{bucket}"), "", b"")
    }

    pub fn list_buckets(&mut self) -> Response {
        self.send("GET", "/", "", b"")
    }

    pub fn list(&mut self, bucket: &str) -> Response {
        self.send("GET", &format!("/{bucket}"), "list-type=2", b"")
    }

    pub fn put(&mut self, bucket: &str, key: &str, body: &[u8]) -> Response {
        self.send("PUT", &format!("/{bucket}/{key}"), "", body)
    }

    pub fn get(&mut self, bucket: &str, key: &str) -> Response {
        self.send("GET", &format!("/{bucket}/{key}"), "", b"")
    }

    pub fn head(&mut self, bucket: &str, key: &str) -> Response {
        self.send("HEAD", &format!("/{bucket}/{key}"), "", b"")
    }

    pub fn delete(&mut self, bucket: &str, key: &str) -> Response {
        self.send("DELETE", &format!("/{bucket}/{key}"), "", b"")
    }

    /// `query` has its parameters sorted and encoded.
    pub fn send(&mut self, method: &str, path: &str, query: &str, body: &[u8]) -> Response {
        self.send_with(method, path, query, &[], body)
    }

    pub fn send_with(
        &mut self,
        method: &str,
        path: &str,
        query: &str,
        unsigned_headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let request = self.signed(method, path, query, unsigned_headers, body);
        self.exchange(method, &request, body)
    }

    /// Everything up to the body, ready to be sent.
    pub fn signed(
        &self,
        method: &str,
        path: &str,
        query: &str,
        unsigned_headers: &[(&str, &str)],
        body: &[u8],
    ) -> String {
        let time = Timestamp::now();
        let (date, instant) = (&time.0[..8], &time.0);
        let host = self.address;
        let payload = hex(&Sha256::digest(body));
        let canonical = format!(
            "{method}\n{path}\n{query}\nhost:{host}\nx-amz-content-sha256:{payload}\n\
             x-amz-date:{instant}\n\nhost;x-amz-content-sha256;x-amz-date\n{payload}"
        );
        let scope = format!("{date}/{REGION}/s3/aws4_request");
        let digest = hex(&Sha256::digest(canonical));
        let to_sign = format!("AWS4-HMAC-SHA256\n{instant}\n{scope}\n{digest}");
        let key = format!("AWS4{}", self.secret_key).into_bytes();
        let key = [date, REGION, "s3", "aws4_request"]
            .iter()
            .fold(key, |key, part| hmac(&key, part));
        let signature = hex(&hmac(&key, &to_sign));
        let extra = unsigned_headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let extra: String = extra.collect();
        let target = if query.is_empty() {
            path.to_owned()
        } else {
            format!("{path}?{query}")
        };
        format!(
            "{method} {target} HTTP/1.1\r\nhost: {host}\r\nx-amz-date: {instant}\r\n\
             x-amz-content-sha256: {payload}\r\nauthorization: AWS4-HMAC-SHA256 \
             Credential={ACCESS_KEY}/{scope}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, \
             Signature={signature}\r\ncontent-length: {}\r\n{extra}\r\n",
            body.len()
        )
    }

    pub fn exchange(&mut self, method: &str, request: &str, body: &[u8]) -> Response {
        let whole = [request.as_bytes(), body].concat();
        self.connection.get_mut().write_all(&whole).unwrap();
        self.read_response(method == "HEAD")
    }

    fn read_response(&mut self, head: bool) -> Response {
        let status = self.line();
        let status = status
            .split(' ')
            .nth(1)
            .expect("a status line")
            .parse()
            .unwrap();
        let mut headers = vec![];
        loop {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").expect("a header");
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let mut response = Response {
            status,
            headers,
            body: vec![],
        };
        if !head && status != 204 {
            response.body = self.body(&response);
        }
        response
    }

    fn body(&mut self, response: &Response) -> Vec<u8> {
        let mut body = vec![];
        if response.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&self.line(), 16).unwrap();
                let start = body.len();
                body.resize(start + size, 0);
                self.connection.read_exact(&mut body[start..]).unwrap();
                self.line();
                if size == 0 {
                    return body;
                }
            }
        }
        let len = response
            .header("content-length")
            .map_or(0, |len| len.parse().unwrap());
        body.resize(len, 0);
        self.connection.read_exact(&mut body).unwrap();
        body
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.connection.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the node closed the connection");
        line.trim_end().to_owned()
    }
}

fn hmac(key: &[u8], message: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(message.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `YYYYMMDDThhmmssZ`
struct Timestamp(String);

impl Timestamp {
    fn now() -> Self {
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let (days, of_day) = (seconds / 86_400, seconds % 86_400);
        // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
        let shifted = days + 719_468;
        let of_era = shifted % 146_097;
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        let year = year_of_era + shifted / 146_097 * 400 + u64::from(month <= 2);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        Self(format!(
            "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z"
        ))
    }
}
