//! Blobs on the replicas of their vdisk, and on no other node, as Bob places them. Whichever node is
//! asked, a write costs one round among the replicas; a read costs none at a replica that holds the
//! blob, and one elsewhere. `--protocol` plays no part in it.

use bytes::Bytes;

use crate::answers::record_of;
use crate::clock::{NodeId, Version};
use crate::op::{Failure, Rounds};
use crate::placement::{BUCKET_STATE, Vdisk};
use crate::record::{Meta, ObjectName, Record};
use crate::replica::Command;
use crate::round::{Answered, Members, Round};

impl Members {
    /// Puts a blob or, with None, a tombstone; done when the vdisk's quorum has it on disk.
    pub async fn write_blob(
        &self,
        vdisk: &Vdisk,
        name: ObjectName,
        object: Option<Meta>,
        body: Bytes,
        rounds: &Rounds,
    ) -> Result<(), Failure> {
        let defects = &self.defects;
        if defects.drops(object.as_ref()) {
            return Ok(());
        }
        let (object, body) = defects.stored(object, body);
        let record = Record {
            version: self.clock.tick(),
            incarnation: BUCKET_STATE.created,
            object,
        };
        let write = Command::Write {
            name: name.clone(),
            bucket: BUCKET_STATE,
            record: record.clone(),
        };
        let group = self.group(&vdisk.nodes, vdisk.quorum);
        let mut round = self.round(group, write.clone(), &write, body.clone())?;
        let outcome = round.quorum().await;
        rounds.add(u32::from(round.went_out()));
        if outcome.is_ok() {
            self.acknowledged(&round, name, &record, BUCKET_STATE.created);
            if round.reached() {
                self.tell_missing(round, write, body);
            }
        }
        outcome
    }

    /// The blob of the first replica that holds one newer than every tombstone seen until then; this
    /// node's own replica, where it has one, is looked at before any other is asked.
    ///
    /// # Errors
    /// `NoSuchKey` if so many replicas answered without one that it was not there, or was removed.
    pub async fn read_blob(
        &self,
        vdisk: &Vdisk,
        name: ObjectName,
        body: bool,
        rounds: &Rounds,
    ) -> Result<(Meta, Bytes), Failure> {
        let nodes = vdisk.nodes.iter();
        let (own, others): (Vec<_>, _) = nodes.partition(|&&node| node == self.own);
        let mut here = self.ask_replicas(vdisk, &own, &name, body, Version::ZERO)?;
        here.all().await;
        if let Some(found) = self.blob_of(&here) {
            return Ok(found);
        }
        // A tombstone of our own: an older blob need not be sent.
        let known = newest(&here).map_or(Version::ZERO, |(_, record)| record.version);
        let mut round = self
            .ask_replicas(vdisk, &others, &name, body, known)?
            .after(here);
        // Each is waited for: the last one may be the one that holds it.
        while round.one_more().await {
            if let Some(found) = self.blob_of(&round) {
                rounds.add(1);
                return Ok(found);
            }
            if round.reached() {
                break;
            }
        }
        rounds.add(u32::from(!others.is_empty()));
        match round.reached() {
            true => Err(Failure::NoSuchKey),
            false => Err(round.too_few()),
        }
    }

    fn ask_replicas(
        &self,
        vdisk: &Vdisk,
        nodes: &[NodeId],
        name: &ObjectName,
        body: bool,
        known: Version,
    ) -> Result<Round, Failure> {
        let name = name.clone();
        let get = Command::Get { name, body, known };
        let group = self.group(nodes, vdisk.enough_to_deny());
        self.round(group, get.clone(), &get, Bytes::new())
    }

    fn blob_of(&self, round: &Round) -> Option<(Meta, Bytes)> {
        let (answered, record) = newest(round)?;
        if self.defects.hides(record.version, self.own) {
            return None;
        }
        let meta = record.object.clone()?;
        // What the client writes after this must be newer, whatever the wall clocks say.
        self.clock.observe(record.version);
        Some((meta, answered.body.clone()))
    }
}

fn newest(round: &Round) -> Option<(&Answered, &Record)> {
    let records = round.answers.iter();
    let records = records.filter_map(|answered| Some((answered, record_of(answered)?)));
    records.max_by_key(|(_, record)| record.version)
}
