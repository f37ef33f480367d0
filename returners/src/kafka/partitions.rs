//! Divides messages among the partitions of a topic, and into batches that a server accepts.

use std::collections::BTreeMap;

/// The overhead of a message in a batch, in bytes: the upper bound of its header.
pub(super) const MESSAGE_OVERHEAD: usize = 64;

/// A message and the key that selects its partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub key: String,
    pub value: String,
}

impl Message {
    /// Returns an upper bound of the size in a batch, in bytes.
    pub fn size(&self) -> usize {
        self.key.len() + self.value.len() + MESSAGE_OVERHEAD
    }
}

/// Returns the partition of a key. It is the same as with librdkafka, which most other clients use.
fn partition_of(key: &str, partitions: &[i32]) -> i32 {
    let at = crc32fast::hash(key.as_bytes()) as usize % partitions.len();
    partitions[at]
}

/// Returns the batches of each partition, in the order of the messages. A batch has at most `limit` bytes, or one message.
pub(super) fn batches(messages: Vec<Message>, partitions: &[i32], limit: usize) -> Vec<(i32, Vec<Vec<Message>>)> {
    let mut divided: BTreeMap<i32, (usize, Vec<Vec<Message>>)> = BTreeMap::new();
    for message in messages {
        let (size, batches) = divided.entry(partition_of(&message.key, partitions)).or_default();
        *size += message.size();
        match batches.last_mut() {
            Some(last) if *size <= limit => last.push(message),
            _ => {
                *size = message.size();
                batches.push(vec![message]);
            }
        }
    }
    divided.into_iter().map(|(partition, (_, batches))| (partition, batches)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(key: &str, length: usize) -> Message {
        Message { key: key.to_owned(), value: "x".repeat(length) }
    }

    #[test]
    fn keys_choose_partitions_as_in_librdkafka() {
        // `rd_kafka_msg_partitioner_consistent`: the CRC-32 of the key, modulo the number of partitions.
        for (key, count, expected) in [("web1", 4, 0x9fa5_47ed_u32 % 4), ("", 3, 0), ("ü", 1, 0)] {
            let partitions: Vec<i32> = (0..count).collect();
            assert_eq!(partition_of(key, &partitions), expected as i32, "{key}");
        }
        assert_eq!(partition_of("web1", &[7]), 7);
    }

    #[test]
    fn batches_keep_the_order_and_the_limit() {
        let messages: Vec<Message> = (0..100).map(|number| message(&format!("m{}", number % 7), number)).collect();
        let divided = batches(messages.clone(), &[0, 1, 2], 500);
        for (partition, batches) in &divided {
            for batch in batches {
                assert!(batch.iter().map(Message::size).sum::<usize>() <= 500);
            }
            let of_partition = messages.iter().filter(|one| partition_of(&one.key, &[0, 1, 2]) == *partition);
            assert!(batches.iter().flatten().eq(of_partition), "{partition}");
        }
        assert_eq!(divided.iter().flat_map(|(_, batches)| batches).flatten().count(), 100);
        let large = batches(vec![message("a", 1), message("a", 900), message("a", 1)], &[0], 500);
        assert_eq!(large[0].1.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1]);
    }
}
