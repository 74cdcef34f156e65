//! A network that is slow on purpose: TCP proxies that hold every byte for a fixed time.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that went through proxies.
pub type Traffic = Arc<AtomicU64>;

/// Starts a proxy to `target` that delays each direction by `delay`. Its threads end with the
/// connections, or with the test.
pub fn delaying_proxy(target: SocketAddr, delay: Duration, traffic: Traffic) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for near in listener.incoming() {
            let near = near.unwrap();
            // Refused until the node behind is up: the near end is closed, and tries again.
            let Ok(far) = TcpStream::connect(target) else {
                continue;
            };
            for socket in [&near, &far] {
                socket.set_nodelay(true).unwrap();
            }
            pump(
                near.try_clone().unwrap(),
                far.try_clone().unwrap(),
                delay,
                traffic.clone(),
            );
            pump(far, near, delay, traffic.clone());
        }
    });
    address
}

fn pump(mut from: TcpStream, mut to: TcpStream, delay: Duration, traffic: Traffic) {
    let (sender, held) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(len @ 1..) = from.read(&mut buffer) {
            let due = Instant::now() + delay;
            traffic.fetch_add(len as u64, Ordering::Relaxed);
            if sender.send((due, buffer[..len].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in held {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
