//! Clusters of real processes on loopback addresses of their own, gone with the test.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bob::Bob;
use super::client::{ACCESS_KEY, Client, SECRET_KEY};
use super::network::{Traffic, delaying_proxy};
use super::{PATIENCE, eventually};

/// What a node listens on: S3, peers, health, Bob's API.
const PORTS: u16 = 4;

pub struct Cluster {
    protocol: String,
    options: Vec<String>,
    /// Beside those of all nodes, by node.
    own_options: Vec<(usize, String)>,
    /// Nodes on a file system of their own, of so many bytes.
    volumes: Vec<(usize, u64)>,
    directory: PathBuf,
    port: u16,
    /// By node and peer: the address at which the one knows the other.
    peers: Vec<Vec<SocketAddr>>,
    children: Vec<Option<Child>>,
    /// Bytes between nodes that are far apart.
    pub traffic: Traffic,
}

impl Cluster {
    /// Nodes with nothing between them.
    pub fn of(nodes: usize, protocol: &str, options: &[&str]) -> Self {
        let mut cluster = Self::unstarted(nodes, protocol, options);
        cluster.start_all();
        cluster
    }

    /// The same, and the bucket.
    pub fn with_bucket(nodes: usize, protocol: &str, options: &[&str]) -> Self {
        let cluster = Self::of(nodes, protocol, options);
        cluster.client(0).create_bucket().expect(200);
        cluster
    }

    /// Nodes with this delay in each direction between any two of them.
    pub fn far_apart(nodes: usize, protocol: &str, options: &[&str], delay: Duration) -> Self {
        let mut cluster = Self::unstarted(nodes, protocol, options);
        for from in 0..nodes {
            for to in (0..nodes).filter(|&to| to != from) {
                let target = cluster.peers[from][to];
                cluster.peers[from][to] = delaying_proxy(target, delay, cluster.traffic.clone());
            }
        }
        cluster.start_all();
        cluster
    }

    pub fn unstarted(nodes: usize, protocol: &str, options: &[&str]) -> Self {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("quorum-test-{}-{number}", std::process::id());
        let directory = root().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let port = 10_000 + PORTS * number;
        let peers = (0..nodes)
            .map(|node| SocketAddr::new(ip(node).into(), port + 1))
            .collect();
        Self {
            protocol: protocol.to_owned(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
            own_options: vec![],
            volumes: vec![],
            directory,
            port,
            peers: vec![peers; nodes],
            children: (0..nodes).map(|_| None).collect(),
            traffic: Traffic::default(),
        }
    }

    /// Gives one node an option that the others do not have.
    pub fn own_option(&mut self, node: usize, option: &str) {
        self.own_options.push((node, option.to_owned()));
    }

    /// Has a node keep its replica on a file system of so many bytes, which ends with its process.
    /// False where this machine does not let us make one.
    pub fn limit(&mut self, node: usize, bytes: u64) -> bool {
        self.volumes.push((node, bytes));
        let allowed = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "mount"])
            .args(["-t", "tmpfs", "none", "/mnt"])
            .stderr(Stdio::null())
            .status();
        allowed.is_ok_and(|status| status.success())
    }

    /// The replica's directory as the node sees it, which may be on a file system of its own.
    pub fn data_inside(&self, node: usize) -> PathBuf {
        let child = self.children[node].as_ref().expect("the node runs");
        let root = PathBuf::from(format!("/proc/{}/root", child.id()));
        root.join(self.data(node).strip_prefix("/").unwrap())
    }

    pub fn start_all(&mut self) {
        self.start(0..self.children.len());
    }

    /// Starts these nodes, and waits until they reach all others.
    pub fn start(&mut self, nodes: impl IntoIterator<Item = usize>) {
        let ready: Vec<_> = nodes.into_iter().map(|node| self.spawn(node)).collect();
        for ready in ready {
            self.wait(&ready);
        }
    }

    /// Starts a node; what it prints first comes through the channel.
    pub fn spawn(&mut self, node: usize) -> mpsc::Receiver<String> {
        assert!(self.children[node].is_none(), "node {node} runs already");
        let mut child = self.command(node).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        self.children[node] = Some(child);
        let (sender, ready) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = sender.send(line);
        });
        ready
    }

    #[track_caller]
    pub fn wait(&self, ready: &mpsc::Receiver<String>) {
        let line = ready.recv_timeout(PATIENCE);
        assert_eq!(line.as_deref(), Ok("ready\n"), "{}", self.logs());
    }

    /// Runs a node that cannot start; returns what it says.
    #[track_caller]
    pub fn refusal(&self, more: &[&str]) -> String {
        let mut command = self.command(0);
        let output = command.args(more).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        said
    }

    pub fn command(&self, node: usize) -> Command {
        let mut command = self.program(node);
        let (own, port) = (ip(node), self.port);
        let log = self.directory.join(format!("n{node}.log"));
        let log = File::options().append(true).create(true).open(log).unwrap();
        let line = format!(
            "serve --name n{node} --protocol {} --s3 {own}:{port} --peer-listen {own}:{} \
             --access-key {ACCESS_KEY} --secret-key {SECRET_KEY}",
            self.protocol,
            port + 1
        );
        command
            .args(line.split_whitespace())
            .arg("--data")
            .arg(self.data(node))
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        for (_, option) in self.own_options.iter().filter(|(own, _)| *own == node) {
            command.arg(option);
        }
        // Bob's API is served where there are vdisks for it.
        if self.options.iter().any(|option| option == "--vdisk") {
            command.args(["--bob", &self.bob_address(node).to_string()]);
        }
        for (peer, address) in self.peers[node].iter().enumerate() {
            command.args(["--peer", &format!("n{peer}={address}")]);
        }
        command
    }

    fn program(&self, node: usize) -> Command {
        let program = env!("CARGO_BIN_EXE_quorum");
        let Some((_, bytes)) = self.volumes.iter().find(|(limited, _)| *limited == node) else {
            return Command::new(program);
        };
        let data = self.data(node);
        std::fs::create_dir_all(&data).unwrap();
        let data = data.display();
        let mount = format!("mount -t tmpfs -o size={bytes} none {data} && exec {program} \"$@\"");
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
            .args([&mount, "sh"]);
        command
    }

    pub fn data(&self, node: usize) -> PathBuf {
        self.directory.join(format!("data-n{node}"))
    }

    pub fn client(&self, node: usize) -> Client {
        self.client_with(node, SECRET_KEY)
    }

    pub fn client_with(&self, node: usize, secret_key: &str) -> Client {
        Client::new(SocketAddr::new(ip(node).into(), self.port), secret_key)
    }

    /// What a Get of the object says at a node.
    #[track_caller]
    pub fn read(&self, node: usize, key: &str) -> String {
        self.client(node).get(key).expect(200).text()
    }

    pub fn bob(&self, node: usize) -> Bob {
        Bob::new(self.bob_address(node))
    }

    pub fn bob_address(&self, node: usize) -> SocketAddr {
        SocketAddr::new(ip(node).into(), self.port + 3)
    }

    /// What a node says about itself; null where it does not listen.
    pub fn health(&self, node: usize) -> Value {
        let address = SocketAddr::new(ip(node).into(), self.port + 2);
        let Ok(mut socket) = TcpStream::connect(address) else {
            return Value::Null;
        };
        let request = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        socket.write_all(request).unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        serde_json::from_str(body).unwrap()
    }

    /// Flips a bit of what a node wrote last.
    pub fn damage(&self, node: usize) {
        let entries = std::fs::read_dir(self.data(node).join("entries")).unwrap();
        let last = entries.map(|entry| entry.unwrap().path()).max().unwrap();
        let mut bytes = std::fs::read(&last).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&last, bytes).unwrap();
    }

    /// How many objects a node holds.
    pub fn objects(&self, node: usize) -> u64 {
        self.health(node)["objects"].as_u64().unwrap()
    }

    /// Waits until these nodes hold so many objects each.
    #[track_caller]
    pub fn hold(&self, nodes: impl IntoIterator<Item = usize> + Clone, count: u64) {
        let all = || {
            nodes
                .clone()
                .into_iter()
                .all(|node| self.objects(node) == count)
        };
        eventually("the replicas hold it", all);
    }

    /// Waits until a node reaches so many others.
    #[track_caller]
    pub fn reaches(&self, node: usize, count: u64) {
        let reached = || self.health(node)["peers_connected"] == count;
        eventually("the node reaches so many", reached);
    }

    /// kill -9 of these nodes at once; they are started again, and reach each other.
    pub fn restart(&mut self, nodes: impl IntoIterator<Item = usize> + Clone) {
        for node in nodes.clone() {
            self.kill(node);
        }
        self.start(nodes);
    }

    /// kill -9
    pub fn kill(&mut self, node: usize) {
        let mut child = self.children[node].take().expect("the node runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Makes a node stop where it is: its connections stay, nothing answers.
    pub fn stop(&self, node: usize) {
        self.signal(node, "-STOP");
    }

    /// Lets a node go on that was stopped.
    pub fn resume(&self, node: usize) {
        self.signal(node, "-CONT");
    }

    fn signal(&self, node: usize, signal: &str) {
        let child = self.children[node].as_ref().expect("the node runs");
        let kill = format!("kill {signal} {}", child.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(sent.success());
        if signal == "-STOP" {
            // Its first thread stops the others, once a processor lets it.
            let tasks = format!("/proc/{}/task", child.id());
            let begun = Instant::now();
            while !all_stopped(&tasks) {
                assert!(begun.elapsed() < PATIENCE, "{tasks} do not stop");
                thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// The most memory that a node has used, in bytes.
    pub fn peak_memory(&self, node: usize) -> u64 {
        let child = self.children[node].as_ref().expect("the node runs");
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = peak.expect("VmHWM").trim().trim_end_matches(" kB");
        kilobytes.parse::<u64>().unwrap() << 10
    }

    pub fn logs(&self) -> String {
        let logs = (0..self.children.len()).map(|node| {
            let log = std::fs::read_to_string(self.directory.join(format!("n{node}.log")));
            format!("--- n{node}\n{}", log.unwrap_or_default())
        });
        logs.collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if thread::panicking() {
            eprintln!("{}", self.logs());
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Whether each thread of a process is stopped, by their directory in /proc.
fn all_stopped(tasks: &str) -> bool {
    fs::read_dir(tasks).unwrap().all(|task| {
        let stat = fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('T'))
    })
}

/// In memory where that is possible: these tests claim something about rounds and survival of
/// processes, and a busy disk would only make them slow and their timing coarse.
fn root() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    match memory.is_dir() {
        true => memory,
        false => env!("CARGO_TARGET_TMPDIR").into(),
    }
}

/// An address of this process alone. Whether a port is free on an address that others use cannot be
/// asked: until the node has it, the kernel may have given it to a client of somebody else, and a
/// process that is being started holds what its parent tried for a moment.
fn ip(node: usize) -> Ipv4Addr {
    assert!(node < 6, "a process has addresses for six nodes");
    let own = (std::process::id() << 3) & 0x00ff_ffff;
    Ipv4Addr::from((127 << 24) | own | (1 + node as u32))
}
