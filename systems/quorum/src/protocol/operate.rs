//! A client's operation as rounds of commands: what all protocols have in common.

use bytes::Bytes;

use super::operation::Operation;
use crate::answers::{bucket_of, buckets_apart, merge_buckets};
use crate::listing::{Listing, differing, merge};
use crate::op::{Failure, Op, Reply, Response};
use crate::placement::BUCKET;
use crate::record::{BucketState, ObjectName};
use crate::replica::{Answer, Command};
use crate::round::Answered;
use crate::store::{Page, Query};
use crate::suspects::Suspect;

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

    async fn list_buckets(&self) -> Result<Reply, Failure> {
        let mut round = self.read_round(Command::Buckets, &Command::Buckets)?;
        round.quorum().await?;
        let merged = merge_buckets(&round.answers);
        self.members.watch(round, buckets_apart);
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
