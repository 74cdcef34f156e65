//! One link between two stations, each in a network namespace of its own:
//!
//! ```text
//! left namespace   core namespace (where the test runs)   right namespace
//!   l0 ──────────────── wa [wire] wb ────────────────────── r0
//! 10.0.0.1                                               10.0.0.2
//! ```

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};
use wire::sys::PacketSocket;

use crate::frames::{Address, LEFT, RIGHT};
use crate::program::Wire;
use crate::station::Station;

/// The network, and `wire` in the middle of it.
pub struct Lab {
    left: Namespace,
    right: Namespace,
    pub wire: Wire,
}

impl Lab {
    /// The network with one impairment from left to right and one back.
    pub fn new(ab: &Value, ba: &Value) -> Lab {
        let mut lab = Lab::idle(&[]);
        lab.wire.ask_ok(&json!({
            "op": "start", "seed": 1, "links": [{"a": "wa", "b": "wb", "ab": ab, "ba": ba}],
        }));
        lab
    }

    /// The network with a `wire` that has not been told to start.
    pub fn idle(options: &[&str]) -> Lab {
        Lab::around(|| Wire::spawn(options))
    }

    /// The network with a `wire` that somebody else starts.
    pub fn around(start: impl FnOnce() -> Wire) -> Lab {
        let (left, right) = (Namespace::new(), Namespace::new());
        ip("link add wa type veth peer name l0");
        ip("link add wb type veth peer name r0");
        for (interface, namespace) in [("l0", &left), ("r0", &right)] {
            ip(&format!(
                "link set {interface} netns {}",
                namespace.process.id()
            ));
        }
        for interface in ["wa", "wb"] {
            ip(&format!("link set {interface} addrgenmode none up"));
        }
        left.adopt("l0", LEFT, RIGHT);
        right.adopt("r0", RIGHT, LEFT);
        let lab = Lab {
            left,
            right,
            wire: start(),
        };
        lab.until_carrying();
        lab
    }

    /// Waits until all interfaces pass frames on.
    pub fn until_carrying(&self) {
        until_carrying(&["wa", "wb"]);
        self.left.run(|| until_carrying(&["l0"]));
        self.right.run(|| until_carrying(&["r0"]));
    }

    /// A station on the left or right end of the link.
    pub fn stations(&self) -> (Station, Station) {
        let left = self.left.run(|| Station::open("l0"));
        let right = self.right.run(|| Station::open("r0"));
        (left, right)
    }

    /// Sockets on the left and right end, for frames of any kind.
    pub fn packet_sockets(&self) -> (PacketSocket, PacketSocket) {
        let left = self.left.run(|| PacketSocket::open("l0")).unwrap();
        let right = self.right.run(|| PacketSocket::open("r0")).unwrap();
        (left, right)
    }

    /// A TCP connection across the link.
    pub fn connect(&self) -> (TcpStream, TcpStream) {
        let listener = self
            .right
            .run(|| TcpListener::bind("10.0.0.2:5001"))
            .unwrap();
        let address = "10.0.0.2:5001".parse().unwrap();
        let left = self
            .left
            .run(|| TcpStream::connect_timeout(&address, Duration::from_secs(30)))
            .unwrap();
        (left, listener.accept().unwrap().0)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // The kernel takes its time with the interfaces of a namespace that has ended, and the
        // next lab of the same test wants the names. After a failure one may be gone already.
        for interface in ["wa", "wb"] {
            let delete = ["link", "delete", interface];
            let _ = Command::new("ip")
                .args(delete)
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// Runs `ip` in the network namespace of the calling thread.
pub fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
}

/// Waits until interfaces pass frames on. After their other end is up, the kernel takes its time
/// for that: up to a second where other interfaces come and go. Until then it drops what is sent.
fn until_carrying(interfaces: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(30);
    for interface in interfaces {
        let carrying = || {
            let show = ["-o", "link", "show", interface];
            let output = Command::new("ip").args(show).output().unwrap();
            let line = String::from_utf8_lossy(&output.stdout).into_owned();
            line.contains(" state UP ") && line.contains(" qdisc noqueue ")
        };
        while !carrying() {
            assert!(Instant::now() < deadline, "{interface} carries nothing");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A network namespace, held open by a process that ends when we do.
struct Namespace {
    process: Child,
    file: File,
}

impl Namespace {
    fn new() -> Namespace {
        // cat ends when its input does: with this process, however that ends.
        let process = Command::new("unshare")
            .args(["--net", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let path = format!("/proc/{}/ns/net", process.id());
        let ours = std::fs::read_link("/proc/self/ns/net").unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while std::fs::read_link(&path).is_ok_and(|theirs| theirs == ours) {
            assert!(Instant::now() < deadline, "unshare --net does nothing");
            thread::sleep(Duration::from_millis(1));
        }
        let file = File::open(path).unwrap();
        Namespace { process, file }
    }

    /// Runs `body` on a thread in this namespace. Sockets opened there stay there.
    fn run<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let in_there = scope.spawn(|| {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(self.file.as_fd(), kind).unwrap();
                body()
            });
            in_there.join().unwrap()
        })
    }

    /// Configures an interface that has been moved here. Nothing but the test sends from it.
    fn adopt(&self, interface: &str, own: Address, peer: Address) {
        self.run(|| {
            ip(&format!(
                "link set {interface} addrgenmode none address {}",
                own.mac_text()
            ));
            ip(&format!("address add {}/24 dev {interface}", own.ip_text()));
            ip(&format!("link set {interface} up"));
            let neighbour = format!("{} lladdr {}", peer.ip_text(), peer.mac_text());
            ip(&format!(
                "neighbour add {neighbour} dev {interface} nud permanent"
            ));
        });
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
