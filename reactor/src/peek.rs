//! A look at the fields of an event that the reactor itself goes by, without unpacking the rest.

use brine_event::Event;
use brine_value::{FromValue, msgpack};

/// How many causes an event has behind it, each a reaction.
pub const DEPTH: &str = "_depth";

/// The field with the id of the minion that sent an event. Only the master sets it; its own events have none.
pub(crate) const FROM: &str = "_from";

/// What the reactor goes by.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Peek {
    pub id: Option<String>,
    pub user: Option<String>,
    /// The minion that sent the event, as the master authenticated it.
    pub from: Option<String>,
    pub depth: u64,
}

impl Peek {
    pub fn at(event: &Event) -> Self {
        let mut peek = Peek::default();
        let text = |packed| msgpack::unpack(packed).ok().map(|value| value.to_string());
        // The body was checked when the event was made.
        _ = msgpack::scan(event.body(), |entry| match entry.key {
            Some("id") => peek.id = text(entry.value),
            Some(FROM) => peek.from = text(entry.value),
            Some("user") => peek.user = text(entry.value),
            Some(DEPTH) => {
                peek.depth = msgpack::unpack(entry.value).ok().and_then(|value| u64::from_value(&value)).unwrap_or(0);
            }
            _ => {}
        });
        peek
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn fields_are_seen_without_unpacking_the_rest() {
        let event = |map| Event::from_map("t", &map).unwrap();
        assert_eq!(Peek::at(&event(map! {"x" => 1})), Peek::default());
        let data = map! {"id" => "web1", "deep" => map! {"id" => "other"}, "user" => "Reactor", "_depth" => 3, "_from" => "web2"};
        let peek = Peek { id: Some("web1".into()), user: Some("Reactor".into()), from: Some("web2".into()), depth: 3 };
        assert_eq!(Peek::at(&event(data)), peek);
    }
}
