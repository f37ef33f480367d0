//! docs/reference/events.md documents every event that was recorded from Salt, with its fields.

use std::collections::BTreeSet;

use brine_value::{Value, json};

/// A row of a table of events: its tags, and all words in code.
struct Row<'a> {
    tags: Vec<&'a str>,
    words: BTreeSet<&'a str>,
}

fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let one = |line| {
        let (tag, _) = str::strip_prefix(line, "| ")?.split_once(" | ")?;
        Some(Row { tags: codes(tag).collect(), words: codes(line).collect() })
    };
    page.lines().filter_map(one).filter(|row| !row.tags.is_empty()).collect()
}

/// Whether a documented tag, such as `salt/job/<jid>/new`, matches a recorded one.
fn matches(documented: &str, recorded: &str) -> bool {
    let is_open = documented.ends_with("/<name>");
    let (pattern, parts): (Vec<&str>, Vec<&str>) = (documented.split('/').collect(), recorded.split('/').collect());
    let is_long_enough = pattern.len() == parts.len() || (is_open && pattern.len() < parts.len());
    is_long_enough && pattern.iter().zip(&parts).all(|(pattern, part)| part_matches(pattern, part))
}

/// Whether a part of a documented tag, such as `MWorker-<n>`, matches a part of a recorded one.
fn part_matches(pattern: &str, part: &str) -> bool {
    let mut rest = part;
    let literals = pattern.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, literal)| literal));
    literals.enumerate().all(|(index, literal)| match rest.find(literal) {
        Some(at) if index > 0 || at == 0 => {
            rest = &rest[at + literal.len()..];
            true
        }
        _ => false,
    }) && (pattern.contains('<') || rest.is_empty())
}

#[test]
fn every_recorded_event_is_documented() {
    let root = env!("CARGO_MANIFEST_DIR");
    let page = std::fs::read_to_string(format!("{root}/docs/reference/events.md")).unwrap();
    let rows = rows(&page);
    let recorded = std::fs::read_to_string(format!("{root}/tests/events/salt-3008.json")).unwrap();
    let recorded = json::from_json(&recorded).unwrap();
    let mut missing = BTreeSet::new();
    for event in recorded.as_list().unwrap() {
        let tag = event.get("tag").unwrap().to_string();
        // Events of the recording itself, and of beacons, which have their own page.
        if tag.starts_with("try/") || tag.starts_with("salt/beacon/") {
            continue;
        }
        let matching: Vec<&Row<'_>> =
            rows.iter().filter(|row| row.tags.iter().any(|pattern| matches(pattern, &tag))).collect();
        if matching.is_empty() {
            missing.insert(tag.clone());
        }
        for field in event.get("fields").and_then(Value::as_map).unwrap().keys().map(ToString::to_string) {
            let is_known = field == "_stamp" || matching.iter().any(|row| row.words.contains(field.as_str()));
            if !is_known {
                missing.insert(format!("{tag}: {field}"));
            }
        }
    }
    assert_eq!(missing, BTreeSet::new());
}

#[test]
fn placeholders_of_tags_match_one_part() {
    for (documented, recorded, is_match) in [
        ("salt/job/<jid>/new", "salt/job/<jid>/new", true),
        ("salt/job/<jid>/prog/<id>/<n>", "salt/job/<jid>/prog/<id>/0", true),
        ("salt/job/<jid>/new", "salt/job/<jid>/ret", false),
        ("salt/job/<jid>/ret", "salt/job/<jid>/ret/<id>", false),
        ("salt/state_result/<jid>/<id>/<name>", "salt/state_result/<jid>/<id>/my/text", true),
        ("salt/stats/MWorker-<n>", "salt/stats/MWorker-<n>", true),
        ("<module>.<function>", "test.fail", true),
        ("<module>.<function>", "minion_start", false),
        ("key", "key", true),
        ("key", "keys", false),
    ] {
        assert_eq!(matches(documented, recorded), is_match, "{documented} {recorded}");
    }
}
