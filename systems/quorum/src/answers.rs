//! What the answers of a round say together.

use std::collections::BTreeMap;

use crate::clock::Version;
use crate::record::{BucketState, Record};
use crate::replica::Answer;
use crate::round::Answered;
use crate::suspects::Suspect;

/// The bucket's state as all these answers together know it.
pub fn bucket_of(answers: &[Answered]) -> BucketState {
    let states = answers.iter().filter_map(|answered| match answered.answer {
        Answer::Bucket(state) | Answer::Written(state) | Answer::Refused(state) => Some(state),
        Answer::List { bucket, .. } | Answer::Get { bucket, .. } => Some(bucket),
        _ => None,
    });
    states.reduce(BucketState::merge).unwrap_or_default()
}

pub fn record_of(answered: &Answered) -> Option<&Record> {
    match &answered.answer {
        Answer::Get { record, .. } => record.as_ref(),
        _ => None,
    }
}

pub fn version_of(answered: &Answered) -> Option<Version> {
    record_of(answered).map(|record| record.version)
}

/// All buckets that some answer knows of, as all answers together know them.
pub fn merge_buckets(answers: &[Answered]) -> BTreeMap<String, BucketState> {
    let mut merged = BTreeMap::<_, BucketState>::new();
    for answered in answers {
        if let Answer::Buckets(buckets) = &answered.answer {
            for (name, state) in buckets {
                let known = merged.entry(name.clone()).or_default();
                *known = known.merge(*state);
            }
        }
    }
    merged
}

/// Buckets that not all answers know alike.
pub fn buckets_apart(answers: &[Answered]) -> Vec<Suspect> {
    let agrees = |answered: &Answered, bucket: &(String, BucketState)| match &answered.answer {
        Answer::Buckets(buckets) => buckets.contains(bucket),
        _ => true,
    };
    let apart = merge_buckets(answers)
        .into_iter()
        .filter(|bucket| !answers.iter().all(|answered| agrees(answered, bucket)));
    apart.map(|(name, _)| Suspect::Bucket(name)).collect()
}
