//! A client's operation as rounds of commands: what all protocols have in common.

use bytes::Bytes;

use super::placed::BUCKET;
use super::round::{Answered, Group, Members, Round};
use crate::listing::{Listing, differing, merge};
use crate::op::{Failure, Op, Reply, Response, Rounds};
use crate::repair::{self, Suspect, merge_buckets};
use crate::replica::{Answer, Command};
use crate::store::{BucketState, ObjectName, Page, Query};

/// One operation under way, and whom its protocol asks.
pub struct Operation<'a> {
    pub members: &'a Members,
    pub reads: Group,
    pub writes: Group,
    pub rounds: &'a Rounds,
}

impl Operation<'_> {
    pub async fn carry_out(&self, op: Op, body: Bytes) -> Result<Response, Failure> {
        let reply = match op {
            Op::ListBuckets => self.list_buckets().await?,
            Op::CreateBucket { bucket } => self.create_bucket(bucket).await?,
            Op::HeadBucket { bucket } => self.head_bucket(bucket).await?,
            Op::DeleteBucket { bucket } => self.delete_bucket(bucket).await?,
            Op::List { bucket, query } => Reply::Listing(self.list(bucket, query).await?),
            Op::Get { name, body } => return self.get(name, body).await,
            Op::Put { name, meta } => self.write(name, Some(meta), body).await?,
            Op::Delete { name } => self.write(name, None, body).await?,
        };
        Ok((reply, Bytes::new()))
    }

    pub(super) fn read_round(&self, own: Command, others: &Command) -> Result<Round, Failure> {
        let alone = self.reads == self.members.alone();
        self.rounds.add(u32::from(!alone));
        let group = self.reads.clone();
        self.members.round(group, own, others, Bytes::new())
    }

    pub(super) fn write_round(&self, command: &Command, body: Bytes) -> Result<Round, Failure> {
        let (group, own) = (self.writes.clone(), command.clone());
        let round = self.members.round(group, own, command, body)?;
        self.rounds.add(1);
        Ok(round)
    }

    /// A round that carries no work.
    pub async fn nothing(&self) -> Result<(), Failure> {
        let mut round = self.read_round(Command::Nothing, &Command::Nothing)?;
        round.quorum().await
    }

    async fn list_buckets(&self) -> Result<Reply, Failure> {
        let mut round = self.read_round(Command::Buckets, &Command::Buckets)?;
        round.quorum().await?;
        let merged = merge_buckets(&round.answers);
        self.members.watch(round, repair::buckets_apart);
        let shown = |(name, state): &(String, BucketState)| state.alive() && name != BUCKET;
        let alive = merged.into_iter().filter(shown);
        Ok(Reply::Buckets(
            alive.map(|(name, state)| (name, state.created)).collect(),
        ))
    }

    async fn head_bucket(&self, bucket: String) -> Result<Reply, Failure> {
        let command = Command::Bucket { name: bucket };
        let mut round = self.read_round(command.clone(), &command)?;
        round.quorum().await?;
        match bucket_of(&round.answers).alive() {
            true => Ok(Reply::Done),
            false => Err(Failure::NoSuchBucket),
        }
    }

    async fn create_bucket(&self, name: String) -> Result<Reply, Failure> {
        let at = self.members.clock.tick();
        let before = self
            .change_bucket(Command::CreateBucket { name, at })
            .await?;
        match before.alive() {
            true => Err(Failure::BucketExists),
            false => Ok(Reply::Done),
        }
    }

    /// Two steps, a look and a deletion. A Put between them is lost with the bucket.
    async fn delete_bucket(&self, name: String) -> Result<Reply, Failure> {
        let mut query = Query {
            limit: 1,
            ..Query::default()
        };
        loop {
            let listing = self.list(name.clone(), query.clone()).await?;
            if !listing.objects.is_empty() {
                return Err(Failure::BucketNotEmpty);
            }
            match listing.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        let state = BucketState {
            deleted: self.members.clock.tick(),
            ..self.members.replica.store().bucket(&name)
        };
        self.change_bucket(Command::MergeBucket { name, state })
            .await?;
        Ok(Reply::Done)
    }

    /// The bucket as it was before.
    async fn change_bucket(&self, command: Command) -> Result<BucketState, Failure> {
        let mut round = self.write_round(&command, Bytes::new())?;
        round.quorum().await?;
        Ok(bucket_of(&round.answers))
    }

    async fn list(&self, bucket: String, query: Query) -> Result<Listing, Failure> {
        let own_page = self.members.replica.store().page(&bucket, &query);
        let command = Command::List {
            bucket: bucket.clone(),
            query: query.clone(),
            known: Some(own_page.digest()),
        };
        let mut round = self.read_round(command.clone(), &command)?;
        round.quorum().await?;
        let state = bucket_of(&round.answers);
        let pages = pages_of(&round.answers, &own_page);
        self.members.watch(round, move |answers| {
            let keys = differing(&pages_of(answers, &own_page)).into_iter();
            let name = |key| ObjectName {
                bucket: bucket.clone(),
                key,
            };
            keys.map(|key| Suspect::Object(name(key))).collect()
        });
        match state.alive() {
            true => Ok(merge(&pages, state, &query)),
            false => Err(Failure::NoSuchBucket),
        }
    }
}

/// The bucket's state as all these answers together know it.
pub fn bucket_of(answers: &[Answered]) -> BucketState {
    let states = answers.iter().filter_map(|answered| match answered.answer {
        Answer::Bucket(state) | Answer::Written(state) | Answer::Refused(state) => Some(state),
        Answer::List { bucket, .. } | Answer::Get { bucket, .. } => Some(bucket),
        _ => None,
    });
    states.reduce(BucketState::merge).unwrap_or_default()
}

/// The pages of the answers, of those that are alike only one.
fn pages_of(answers: &[Answered], own: &Page) -> Vec<Page> {
    let others = answers
        .iter()
        .filter_map(|answered| match &answered.answer {
            Answer::List { page, .. } => page.clone(),
            _ => None,
        });
    std::iter::once(own.clone()).chain(others).collect()
}
