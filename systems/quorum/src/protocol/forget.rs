//! Planted defect: when a partition has healed, what a minority acknowledged is thrown away.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use super::Members;
use super::placed::{BUCKET, BUCKET_STATE};
use crate::defects::Alone;
use crate::replica::Command;

const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Throws it away as soon as the quorum that it never had is reached; never returns.
pub async fn forget_when_healed(members: Members) {
    loop {
        sleep(LOOK_EVERY).await;
        let mut all = members.defects.take_alone().into_iter();
        for alone in all.by_ref() {
            if !healed(&members, &alone).await || !forget(&members, &alone).await {
                // The others would wait for the same nodes.
                members.defects.put_back([alone]);
                break;
            }
        }
        members.defects.put_back(all);
    }
}

async fn healed(members: &Members, alone: &Alone) -> bool {
    let round = members.round_among(&alone.nodes, alone.needed, Command::Nothing, Bytes::new());
    match round {
        Ok(mut round) => round.full_quorum().await.is_ok(),
        Err(_) => false,
    }
}

async fn forget(members: &Members, alone: &Alone) -> bool {
    let bucket = match &*alone.name.bucket {
        BUCKET => BUCKET_STATE,
        name => members.replica.store().bucket(name),
    };
    let write = Command::Write {
        name: alone.name.clone(),
        bucket,
        record: alone.nothing(),
    };
    let round = members.round_among(&alone.nodes, alone.needed, write, Bytes::new());
    match round {
        Ok(mut round) => round.full_quorum().await.is_ok(),
        Err(_) => false,
    }
}
