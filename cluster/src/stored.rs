//! The stored form of values: small ones as they are, large ones as a list of parts.

use crate::error::LinkError;
use crate::link::Link;
use crate::message::MAX_PAYLOAD;
use crate::metrics;
use crate::part_list::PartList;
use crate::tables::digest;

/// The first byte of a stored value: the value itself, or the marker of a removed one; a list of parts
/// has another one.
const WHOLE: u8 = 0;
pub(crate) const REMOVED: u8 = 2;

/// The content of a value in the cluster.
pub(crate) enum Content {
    Value(Vec<u8>),
    Removed,
    /// Its parts do not belong together.
    Damaged,
    /// Written by a newer version.
    Unknown,
}

/// Returns the stored form of a value; the parts of a large one are stored first, in the one of two slots of this
/// member that the current value does not use.
pub(crate) async fn stored(link: &Link, key: &str, value: &[u8]) -> Result<Vec<u8>, LinkError> {
    if value.len() <= MAX_PAYLOAD {
        return Ok([&[WHOLE], value].concat());
    }
    let member = link.settings.member.as_str();
    let current = match link.get(key).await {
        Ok(entry) => entry.and_then(|entry| PartList::unpack(&entry.value)),
        Err(error) if error.is_forgery() => None,
        Err(error) => return Err(error),
    };
    let is_second = current.is_some_and(|current| current.member == member && !current.is_second);
    let parts = value.chunks(MAX_PAYLOAD);
    let digest = digest(Some(value)).unwrap_or_default();
    let list = PartList { member: member.to_owned(), is_second, count: parts.len() as u64, digest };
    for (number, part) in (0..).zip(parts) {
        link.put_part(&list.key(number, key), part).await?;
    }
    Ok(list.pack())
}

/// Returns the content of a value from its stored form.
pub(crate) async fn content(link: &Link, key: &str, stored: &[u8]) -> Result<Content, LinkError> {
    let list = match stored.split_first() {
        Some((&WHOLE, value)) => return Ok(Content::Value(value.to_vec())),
        Some((&REMOVED, [])) => return Ok(Content::Removed),
        _ => PartList::unpack(stored),
    };
    let Some(list) = list else {
        metrics::VALUES_REFUSED.add(1);
        tracing::error!(key, "a value of the cluster has an unknown format: is another member newer?");
        return Ok(Content::Unknown);
    };
    let mut whole = Vec::new();
    for number in 0..list.count {
        match link.get(&list.key(number, key)).await {
            Ok(Some(part)) => whole.extend(part.value),
            Ok(None) => return Ok(Content::Damaged),
            Err(error) if error.is_forgery() => return Ok(Content::Damaged),
            Err(error) => return Err(error),
        }
    }
    let is_whole = digest(Some(&whole)) == Some(list.digest);
    Ok(if is_whole { Content::Value(whole) } else { Content::Damaged })
}
