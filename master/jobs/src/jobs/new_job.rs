//! The events of a new job: their bodies are made from one encoding of the job's load.
//!
//! There are two. Salt's programs read `new`, whose fields are Salt's and may differ from those of the load (a masked
//! argument, a field of the cause); `publish` has the load as minions get it, from which late minions, members of a
//! cluster and a restarted master publish it. The publish stream gets the load itself and does not subscribe to it: no
//! event has the real arguments of a masked job.

use brine_event::{Event, EventError};
use brine_ids::Jid;
use brine_master_store::job_events::MORE;
use brine_value::{Map, Value, msgpack};

/// The fields of the load in Salt's event of a new job.
const NEW_FIELDS: &[&str] = &["jid", "tgt_type", "tgt", "user", "fun", "arg"];

/// Returns the event `new` of a job, with Salt's fields of the load, the rest of the load below [`MORE`] for the job
/// cache, and further fields, which replace those of the load; and the event `publish`, with the whole load. `packed` is
/// the encoding of the load.
pub(super) fn events(jid: &Jid, load: &Map, packed: &[u8], further: &Map) -> Result<(Event, Event), EventError> {
    let new = body_of_new(load, packed, further)?;
    Ok((Event::new(&format!("salt/job/{jid}/new"), &new)?, Event::new(&format!("salt/job/{jid}/publish"), packed)?))
}

fn body_of_new(load: &Map, packed: &[u8], further: &Map) -> Result<Vec<u8>, msgpack::UnpackError> {
    // The entries are those of the load, in order.
    let encoded = msgpack::entries(packed)?;
    let entries = || load.iter().zip(&encoded).map(|((name, value), entry)| (name, value, entry.value));
    let is_new = |name: &Value| name.as_str().is_some_and(|name| NEW_FIELDS.contains(&name));
    let new = || entries().filter(|(name, ..)| is_new(name) && !further.contains_key(*name));
    let more = || entries().filter(|(name, value, _)| !is_new(name) && value.is_truthy());
    let count = if further.contains_key(MORE) { 0 } else { more().count() };
    let mut body = Vec::with_capacity(packed.len() + 256);
    msgpack::pack_map_len(&mut body, new().count() + usize::from(count > 0) + further.len());
    let pack = |body: &mut Vec<u8>, name: &Value, value: &[u8]| {
        msgpack::pack_into(body, name);
        body.extend_from_slice(value);
    };
    for (name, _, value) in new() {
        pack(&mut body, name, value);
    }
    if count > 0 {
        msgpack::pack_into(&mut body, &MORE.into());
        msgpack::pack_map_len(&mut body, count);
        for (name, _, value) in more() {
            pack(&mut body, name, value);
        }
    }
    for (name, value) in further {
        msgpack::pack_into(&mut body, name);
        msgpack::pack_into(&mut body, value);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn the_new_event_has_salts_fields_and_the_others_in_load() {
        let load = map! {
            "jid" => "1", "fun" => "test.ping", "arg" => vec![Value::from(1)], "ret" => "", "metadata" => "x",
        };
        let jid = "20261120000000000000".parse().unwrap();
        let further = map! {"minions" => vec![Value::from("a")], "_cause" => 7};
        let (new, publish) = events(&jid, &load, &msgpack::pack_map(&load), &further).unwrap();
        let expected = map! {
            "jid" => "1", "fun" => "test.ping", "arg" => vec![Value::from(1)], MORE => map! {"metadata" => "x"},
            "minions" => vec![Value::from("a")], "_cause" => 7,
        };
        assert_eq!((new.tag(), new.data()), ("salt/job/20261120000000000000/new", expected));
        assert_eq!((publish.tag(), publish.data()), ("salt/job/20261120000000000000/publish", load));
    }

    #[test]
    fn further_fields_replace_those_of_the_load() {
        let load = map! {"jid" => "1", "user" => "a", "ret" => "redis"};
        let jid = "20261120000000000000".parse().unwrap();
        let new = |load: &Map, further: &Map| events(&jid, load, &msgpack::pack_map(load), further).unwrap().0;
        let own = new(&load, &map! {"user" => "b", MORE => "own"});
        assert_eq!(own.data(), map! {"jid" => "1", "user" => "b", MORE => "own"});
        assert_eq!(new(&map! {"jid" => "1", "ret" => ""}, &map! {}).data(), map! {"jid" => "1"});
    }
}
