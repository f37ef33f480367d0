//! Reads the routing fields of an event without decoding the rest.

use brine_event::Event;
use brine_value::{FromValue, msgpack};

/// The field with the number of reactions that led to an event.
pub const DEPTH: &str = "_depth";

/// The field with the id of the minion that published an event. Only the master sets it; its own events have none.
pub(crate) const FROM: &str = "_from";

/// The fields of an event that the reactor evaluates.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RoutingFields {
    pub id: Option<String>,
    pub user: Option<String>,
    /// The authenticated id of the minion that published the event.
    pub from: Option<String>,
    pub depth: u64,
}

impl RoutingFields {
    pub fn of(event: &Event) -> Self {
        let mut fields = RoutingFields::default();
        let text = |packed| msgpack::unpack(packed).ok().map(|value| value.to_string());
        // The body was validated when the event was created.
        _ = msgpack::scan(event.body(), |entry| match entry.key {
            Some("id") => fields.id = text(entry.value),
            Some(FROM) => fields.from = text(entry.value),
            Some("user") => fields.user = text(entry.value),
            Some(DEPTH) => {
                fields.depth = msgpack::unpack(entry.value).ok().and_then(|value| u64::from_value(&value)).unwrap_or(0);
            }
            _ => {}
        });
        fields
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn only_top_level_routing_fields_are_read() {
        let event = |map| Event::from_map("t", &map).unwrap();
        assert_eq!(RoutingFields::of(&event(map! {"x" => 1})), RoutingFields::default());
        let data = map! {"id" => "web1", "deep" => map! {"id" => "other"}, "user" => "Reactor", "_depth" => 3, "_from" => "web2"};
        let fields = RoutingFields {
            id: Some("web1".into()),
            user: Some("Reactor".into()),
            from: Some("web2".into()),
            depth: 3,
        };
        assert_eq!(RoutingFields::of(&event(data)), fields);
    }
}
