//! What a node says about itself.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Status line, headers and body of a GET.
pub fn get(address: SocketAddr, path: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    response
}

pub fn number(address: SocketAddr, field: &str) -> u64 {
    let response = get(address, "/healthz");
    let (_, after) = response.split_once(&format!("\"{field}\":")).expect(field);
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

pub fn objects(address: SocketAddr) -> u64 {
    number(address, "objects")
}
