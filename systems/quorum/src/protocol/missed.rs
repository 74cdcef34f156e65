//! Replicas that missed an acknowledged write of Bob's API are told of it again, until they have it,
//! by the node that was asked. A read there is answered by one replica alone, so nothing else would
//! notice: what was removed would come back with a node that was away.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::round::{Members, PeerRequest, Round, encode};
use crate::clock::NodeId;
use crate::log::say;
use crate::peers::Message;
use crate::replica::{Answer, Command};

const AGAIN_EVERY: Duration = Duration::from_secs(1);
/// What may wait at once, in KiB of bodies, each counted as one more: 256 MiB.
const MAX_KIB: usize = 256 << 10;

pub struct Missed {
    memory: Arc<Semaphore>,
}

impl Default for Missed {
    fn default() -> Self {
        Self {
            memory: Arc::new(Semaphore::new(MAX_KIB)),
        }
    }
}

impl Missed {
    /// Waits for the rest of a round that has its quorum, and then sees to those who did not answer.
    pub fn watch(
        &self,
        members: Members,
        mut round: Round,
        nodes: Vec<NodeId>,
        write: Command,
        body: Bytes,
    ) {
        let memory = self.memory.clone();
        tokio::spawn(async move {
            round.all().await;
            let answered = round.answered();
            let mut missing = nodes;
            missing.retain(|node| !answered.contains(node));
            if missing.is_empty() {
                return;
            }
            let kib = (body.len() >> 10) as u32 + 1;
            let Ok(_held) = memory.try_acquire_many_owned(kib) else {
                say("a replica missed a write and is not told again: too much waits already");
                return;
            };
            while !missing.is_empty() {
                sleep(AGAIN_EVERY).await;
                let mut still = vec![];
                for node in missing {
                    if !tell(&members, node, &write, &body).await {
                        still.push(node);
                    }
                }
                missing = still;
            }
        });
    }
}

async fn tell(members: &Members, node: NodeId, write: &Command, body: &Bytes) -> bool {
    let answer = if node == members.own {
        let done = members.replica.carry_out(write.clone(), body.clone()).await;
        Some(done.0)
    } else {
        let message = Message {
            head: encode(&PeerRequest::Command(write.clone())),
            body: body.clone(),
        };
        let limit = members.patience.with_body(body);
        let answered = members.peers.request(node, message, limit).await.ok();
        answered.and_then(|message| postcard::from_bytes(&message.head).ok())
    };
    matches!(answer, Some(Answer::Written(_)))
}
