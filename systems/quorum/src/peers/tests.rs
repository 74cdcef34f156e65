use std::io;

use tokio::time::sleep;

use super::*;

/// What is expected to run out.
const LIMIT: Duration = Duration::from_millis(200);

/// What is not, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers with the request; a head of "wait" is never answered.
struct Echo;

#[async_trait::async_trait]
impl Handler for Echo {
    async fn handle(&self, request: Message) -> Message {
        if request.head == "wait" {
            std::future::pending().await
        }
        request
    }
}

fn message(head: &'static str) -> Message {
    Message {
        head: head.into(),
        body: Bytes::new(),
    }
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A node that knows one peer.
async fn start(name: &str, cluster: &str, peer: SocketAddr, listener: TcpListener) -> Arc<Peers> {
    let hello = Hello::new(name, cluster.into());
    let other = if name == "a" { "b" } else { "a" };
    let peers = Arc::new(Peers::new(
        [(0, other.into(), peer)],
        hello,
        1 << 20,
        Flags::default(),
    ));
    peers.start(listener, Arc::new(Echo));
    peers
}

async fn pair(clusters: [&str; 2]) -> [Arc<Peers>; 2] {
    let (listener_a, address_a) = listen().await;
    let (listener_b, address_b) = listen().await;
    [
        start("a", clusters[0], address_b, listener_a).await,
        start("b", clusters[1], address_a, listener_b).await,
    ]
}

#[tokio::test]
async fn a_slow_answer_does_not_hold_up_another() {
    let [a, _b] = pair(["c", "c"]).await;
    a.until_all_connected().await;
    let (slow, quick) = tokio::join!(
        a.request(0, message("wait"), LIMIT),
        a.request(0, message("quick"), PATIENCE)
    );
    assert_eq!(slow, Err(PeerError::TimedOut(LIMIT)));
    assert_eq!(quick, Ok(message("quick")));
}

/// Forwards to `address` until dropped.
async fn cuttable(address: SocketAddr) -> (tokio::task::JoinHandle<io::Result<()>>, SocketAddr) {
    let (listener, own) = listen().await;
    let forwarding = tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await?;
            let mut far = tokio::net::TcpStream::connect(address).await?;
            tokio::io::copy_bidirectional(&mut near, &mut far).await?;
        }
    });
    (forwarding, own)
}

#[tokio::test]
async fn a_broken_connection_fails_those_who_wait() {
    let (listener_b, address_b) = listen().await;
    let (forwarding, through) = cuttable(address_b).await;
    let (listener_a, address_a) = listen().await;
    let a = start("a", "c", through, listener_a).await;
    let _b = start("b", "c", address_a, listener_b).await;
    a.until_all_connected().await;
    let waiting = a.request(0, message("wait"), PATIENCE);
    let cutting = async {
        sleep(LIMIT / 4).await;
        forwarding.abort();
    };
    let (answer, ()) = tokio::join!(waiting, cutting);
    assert_eq!(answer, Err(PeerError::Broken));
}
