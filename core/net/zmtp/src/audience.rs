//! Selects the subscribers of a published message.

use std::sync::Arc;

use bytes::Bytes;

use super::subscriptions::Subscriptions;

/// The subscribers of one message.
#[derive(Debug, Clone)]
pub(super) enum Audience {
    /// Subscribers to a prefix of the first frame.
    Topic {
        topic: Bytes,
        /// Whether subscriptions to everything are ignored.
        by_name: bool,
    },
    /// Subscribers to a prefix of one of these topics, which is sent as the first frame, and subscribers to everything,
    /// which get no topic. Sorted.
    Topics(Arc<[Bytes]>),
}

/// The form in which one subscriber receives a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery<'a> {
    /// Not at all.
    Skip,
    /// As published.
    WithoutTopic,
    /// After a frame with this topic.
    WithTopic(&'a Bytes),
}

impl Audience {
    /// Creates the audience of these topics, given in any order.
    pub fn of_topics(mut topics: Vec<Bytes>) -> Self {
        topics.sort_unstable();
        topics.dedup();
        Audience::Topics(topics.into())
    }

    /// Returns the form in which a peer with these subscriptions receives the message. It receives it once, regardless
    /// of the number of matching prefixes and topics.
    pub fn delivery(&self, subscriptions: &Subscriptions) -> Delivery<'_> {
        match self {
            Audience::Topic { topic, by_name } if subscriptions.wants(topic, *by_name) => Delivery::WithoutTopic,
            Audience::Topic { .. } => Delivery::Skip,
            Audience::Topics(_) if subscriptions.0.iter().any(Bytes::is_empty) => Delivery::WithoutTopic,
            Audience::Topics(topics) => {
                // Topics with a common prefix are adjacent, and no topic that sorts before them has the prefix.
                let first = |prefix: &Bytes| {
                    topics.get(topics.partition_point(|topic| topic < prefix)).filter(|topic| topic.starts_with(prefix))
                };
                subscriptions.0.iter().find_map(first).map_or(Delivery::Skip, Delivery::WithTopic)
            }
        }
    }

    /// Returns the memory size of the topics in bytes.
    pub fn size(&self) -> usize {
        match self {
            Audience::Topic { .. } => 0,
            Audience::Topics(topics) => topics.iter().map(|topic| topic.len() + size_of::<Bytes>()).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_delivered_once_with_the_matching_topic() {
        let audience = Audience::of_topics(vec!["f0a".into(), "broadcast".into(), "0ab".into(), "0ab".into()]);
        for (prefixes, delivery) in [
            (vec![], Delivery::Skip),
            (vec![""], Delivery::WithoutTopic),
            (vec!["f0a", ""], Delivery::WithoutTopic),
            (vec!["f0a"], Delivery::WithTopic(&"f0a".into())),
            (vec!["broadcast", "f0a"], Delivery::WithTopic(&"broadcast".into())),
            (vec!["other", "f"], Delivery::WithTopic(&"f0a".into())),
            (vec!["f0ab", "0aa", "1", "zzz", "broadcasts"], Delivery::Skip),
        ] {
            let subscriptions = Subscriptions(prefixes.iter().map(|prefix| Bytes::from(*prefix)).collect());
            assert_eq!(audience.delivery(&subscriptions), delivery, "{prefixes:?}");
        }
    }
}
