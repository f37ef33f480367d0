use super::*;
use brine_value::list;

fn update(state: &mut Formatted, tag: &str, data: Map) -> Option<Value> {
    let event = Event::from_map(tag, &data).unwrap();
    state.update(&event).map(|text| json::from_json(&text).unwrap())
}

#[test]
fn jobs_are_running_until_all_minions_have_returned() {
    let mut state = Formatted::default();
    let new =
        map! {"minions" => list!["a", "b"], "fun" => "test.ping", "tgt" => "*", "tgt_type" => "glob", "_stamp" => "t"};
    let value = update(&mut state, "salt/job/1/new", new).unwrap();
    let of = |value: &Value| value.get("jobs").unwrap().get("1").unwrap().get("state").unwrap().to_string();
    assert_eq!(of(&value), "running");
    let ret = map! {"return" => true, "retcode" => 0, "success" => true};
    assert_eq!(of(&update(&mut state, "salt/job/1/ret/a", ret.clone()).unwrap()), "running");
    assert_eq!(of(&update(&mut state, "salt/job/1/ret/b", ret).unwrap()), "complete");
    assert_eq!(update(&mut state, "my/tag", Map::new()), None);
}

#[test]
fn minions_follow_keys_and_presence() {
    let mut state = Formatted::default();
    let ids = |value: Option<Value>| value.map(|value| value.get("minions").unwrap().as_list().unwrap().len());
    assert_eq!(ids(update(&mut state, "salt/key", map! {"id" => "a", "act" => "accept"})), Some(1));
    let present = map! {"present" => list!["a", "b"]};
    assert_eq!(ids(update(&mut state, "salt/presence/present", present.clone())), Some(2));
    assert_eq!(ids(update(&mut state, "salt/presence/present", present)), None);
    assert_eq!(ids(update(&mut state, "salt/key", map! {"id" => "a", "act" => "delete"})), Some(1));
}

#[test]
fn the_state_is_bounded() {
    let mut map = Map::new();
    for number in 0..MAX_ENTRIES + 5 {
        put(&mut map, &number.to_string(), Value::Nil);
    }
    assert_eq!((map.len(), map.contains_key("4"), map.contains_key("5")), (MAX_ENTRIES, false, true));
}
