use super::*;
use brine_value::{list, map};

const LIMIT: usize = 1000;

fn trimmed(mut body: Map) -> Map {
    assert!(trim(&mut body, LIMIT));
    assert!(msgpack::pack_map(&body).len() <= LIMIT);
    body
}

#[test]
fn a_body_that_fits_is_left_alone() {
    let body = map! {"return" => "x".repeat(900), "jid" => "1"};
    let mut same = body.clone();
    assert!(!trim(&mut same, LIMIT));
    assert_eq!(same, body);
}

#[test]
fn large_values_are_replaced_wherever_they_are_in_mappings() {
    let diff = |text: &str| map! {"a_|-b" => map! {"changes" => map! {"diff" => text}, "result" => true}};
    let body = map! {"return" => diff(&"x".repeat(2000)), "retcode" => 0};
    assert_eq!(trimmed(body), map! {"return" => diff(TRIMMED), "retcode" => 0});
    assert_eq!(trimmed(map! {"return" => "x".repeat(2000)}), map! {"return" => TRIMMED});
}

#[test]
fn the_largest_values_go_first() {
    let body = map! {"return" => map! {"small" => "x".repeat(300), "large" => "y".repeat(800)}};
    let expected = map! {"return" => map! {"small" => "x".repeat(300), "large" => TRIMMED}};
    assert_eq!(trimmed(body), expected);
}

#[test]
fn bodies_that_salt_leaves_too_large_lose_entire_fields() {
    let many: Vec<Value> = (0..100).map(|_| Value::from("0123456789")).collect();
    let body = map! {"jid" => "1", "id" => "web1", "return" => list![many.clone(), many], "retcode" => 0};
    assert_eq!(trimmed(body), map! {"jid" => "1", "id" => "web1", "return" => TRIMMED, "retcode" => 0});
    let mut fields: Map = (0..500).map(|n| (Value::from(format!("field{n}")), Value::from(n))).collect();
    fields.extend(map! {"jid" => "1", "id" => "web1", "return" => "x"});
    let left = trimmed(fields);
    let names: Vec<_> = left.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["jid", "id", "return"]);
}

#[test]
fn the_bound_is_never_below_the_packed_size() {
    for body in [
        map! {"a" => "x".repeat(70_000), "b" => list![1, -1, 1.5, true, Value::Nil, map! {"c" => "ü"}]},
        map! {"a" => u64::MAX, "b" => i64::MIN},
        Map::new(),
    ] {
        let size = msgpack::pack_map(&body).len();
        assert!(size <= 1 || may_exceed(&body, size - 1), "{size}");
    }
}

#[test]
fn a_return_that_nests_too_deep_becomes_a_failure_with_a_message() {
    use brine_value::levels::nested;

    let mut fine = map! {"jid" => "1", "return" => nested(MAX_LEVELS - 1), "retcode" => 0, "success" => true};
    let before = fine.clone();
    assert!(!refuse_deep(&mut fine) && fine == before);
    let mut deep = map! {
        "jid" => "1", "fun_args" => nested(MAX_LEVELS), "return" => nested(MAX_LEVELS), "retcode" => 0,
        "success" => true, "out" => "highstate",
    };
    assert!(refuse_deep(&mut deep));
    let limit = "it nests deeper than 100 levels of lists and mappings";
    let expected = map! {
        "jid" => "1", "fun_args" => format!("VALUE_TRIMMED: {limit}"),
        "return" => format!("ERROR: the return was refused: {limit}"), "retcode" => 1, "success" => false,
    };
    assert_eq!(deep, expected);
}
