//! Reading, writing and removing one object.

use bytes::Bytes;

use super::operation::Operation;
use crate::answers::{bucket_of, record_of, version_of};
use crate::clock::Version;
use crate::op::{Effect, Failure, Reply, Response};
use crate::record::{Meta, ObjectName, Record};
use crate::replica::{Answer, Command};
use crate::round::{Answered, Round, unavailable};
use crate::suspects::Suspect;

impl Operation<'_> {
    /// Every node is asked; those that hold nothing newer than this node send no body, so that the
    /// answer fits into one round trip and the body comes from this node's disk.
    pub(super) async fn get(&self, name: ObjectName, body: bool) -> Result<Response, Failure> {
        let known = self.members.replica.store().record(&name);
        let known = known.map_or(Version::ZERO, |record| record.version);
        let get = |known| Command::Get {
            name: name.clone(),
            body,
            known,
        };
        let mut round = self.read_round(get(Version::ZERO), &get(known))?;
        round.quorum().await?;
        let hidden = |newest| self.members.defects.hides(newest, self.members.own);
        let (newest, meta) = match visible(&round.answers)? {
            Some((newest, meta)) if !hidden(newest) => (newest, meta),
            _ => {
                self.watch(round, name);
                return Err(Failure::NoSuchKey);
            }
        };
        // What the client writes after this must be newer, whatever the wall clocks say.
        self.members.clock.observe(newest);
        let found = if body {
            self.body_of(newest, known, &mut round).await
        } else {
            Some(Bytes::new())
        };
        self.watch(round, name.clone());
        let found = match found {
            Some(found) => found,
            None => self.fetch(newest, get(Version::ZERO)).await?,
        };
        let version = newest;
        Ok((Reply::Object { version, meta }, found))
    }

    fn watch(&self, round: Round, name: ObjectName) {
        self.members.watch(round, move |answers| {
            let mut versions = answers.iter().map(version_of);
            let first = versions.next();
            let differ = versions.any(|version| Some(version) != first);
            differ
                .then_some(Suspect::Object(name))
                .into_iter()
                .collect()
        });
    }

    /// The body from the answers, of this node's own and of those that sent theirs. Where only this
    /// node has it, and its disk was slower than a majority of the others, this waits for the disk.
    async fn body_of(&self, newest: Version, known: Version, round: &mut Round) -> Option<Bytes> {
        loop {
            let carries = |answered: &&Answered| {
                let sent_body = answered.node == self.members.own || newest > known;
                sent_body && version_of(answered) == Some(newest)
            };
            if let Some(answered) = round.answers.iter().find(carries) {
                return Some(answered.body.clone());
            }
            if !round.one_more().await {
                return None;
            }
        }
    }

    /// This node's own copy is damaged: one more round, in which all send theirs.
    async fn fetch(&self, version: Version, get: Command) -> Result<Bytes, Failure> {
        let mut round = self.read_round(get.clone(), &get)?;
        let body = self.body_of(version, Version::ZERO, &mut round).await;
        body.ok_or_else(|| {
            let why = "no node that answered has the body undamaged".into();
            unavailable(why, Effect::None)
        })
    }

    /// Puts an object or, with None, a tombstone.
    pub(super) async fn write(
        &self,
        name: ObjectName,
        object: Option<Meta>,
        body: Bytes,
    ) -> Result<Reply, Failure> {
        let defects = &self.members.defects;
        if defects.drops(object.as_ref()) {
            self.rounds.add(1);
            return Ok(Reply::Done);
        }
        let (object, body) = defects.stored(object, body);
        let record = Record {
            version: self.members.clock.tick(),
            incarnation: Version::ZERO,
            object,
        };
        let mut bucket = self.members.replica.store().bucket(&name.bucket);
        // A second time only if a replica of the majority had missed the bucket's creation: then it
        // is told of it.
        let mut told = false;
        for _ in 0..2 {
            let write = Command::Write {
                name: name.clone(),
                bucket,
                record: record.clone(),
            };
            let round = self.write_round(&write, body.clone());
            let mut round = round.map_err(|failure| match told {
                true => in_doubt(failure),
                false => failure,
            })?;
            round.quorum().await?;
            told = true;
            bucket = bucket.merge(bucket_of(&round.answers));
            if !bucket.alive() {
                return Err(Failure::NoSuchBucket);
            }
            let refused = |answered: &Answered| matches!(answered.answer, Answer::Refused(_));
            if !round.answers.iter().any(refused) {
                let members = self.members;
                members.acknowledged(&round, name, &record, bucket.created);
                return Ok(Reply::Done);
            }
        }
        let why = "the bucket was created and deleted meanwhile".into();
        Err(unavailable(why, Effect::Unknown))
    }
}

/// A write of which an earlier round has told some nodes already.
fn in_doubt(failure: Failure) -> Failure {
    match failure {
        Failure::Unavailable(why) => unavailable(why.why, Effect::Unknown),
        other => other,
    }
}

/// The newest version among the answers with what is known about it; None if it is a tombstone, or
/// there is none.
fn visible(answers: &[Answered]) -> Result<Option<(Version, Meta)>, Failure> {
    let bucket = bucket_of(answers);
    if !bucket.alive() {
        return Err(Failure::NoSuchBucket);
    }
    let records = answers.iter().filter_map(record_of);
    let newest = records.max_by_key(|record| record.version);
    let shown = newest.filter(|record| bucket.shows(record.incarnation));
    Ok(shown.and_then(|record| Some((record.version, record.object.clone()?))))
}
