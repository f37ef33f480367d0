//! Parses zone files as Salt does.

use brine_function::CallError;
use brine_value::{Map, Value, list, map};

/// The maximum of times in a zone: a week in seconds (RFC 1035).
const WEEK: u64 = 604_800;

/// Returns the fields of the SOA record by name, and the other records by type.
///
/// # Errors
/// A record has too few fields, or precedes the origin.
pub fn parse(text: &str) -> Result<Map, CallError> {
    let (mut zone, mut open) = (Map::new(), None::<String>);
    for line in text.lines() {
        let line = line.split(';').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(directive) = line.strip_prefix('$') {
            let mut words = directive.split_whitespace();
            if let (Some(name), Some(value)) = (words.next(), words.next()) {
                zone.insert(name.into(), value.into());
            }
            continue;
        }
        // A record in parentheses may span several lines.
        let mut whole = open.take().map_or_else(|| line.to_owned(), |begun| format!("{begun} {line}"));
        if whole.contains('(') && !whole.contains(')') {
            open = Some(whole);
            continue;
        }
        whole.retain(|c| !matches!(c, '(' | ')'));
        record(&mut zone, &whole).ok_or_else(|| CallError::Execution(format!("the record is invalid: {line}")))?;
    }
    Ok(zone)
}

fn record(zone: &mut Map, line: &str) -> Option<()> {
    let origin = zone.get("ORIGIN").map(ToString::to_string);
    let line = origin.as_ref().map_or_else(|| line.to_owned(), |origin| line.replace('@', origin));
    let mut words: Vec<&str> = line.split_whitespace().collect();
    if words.contains(&"SOA") {
        if words.get(1) != Some(&"IN") {
            words.remove(1);
        }
        let contact = words.get(4)?.replacen('.', "@", 1);
        for (name, value) in [
            ("ORIGIN", *words.first()?),
            ("NETWORK", words[1]),
            ("SOURCE", words.get(3)?),
            ("CONTACT", &contact),
            ("SERIAL", words.get(5)?),
        ] {
            zone.insert(name.into(), value.into());
        }
        for (name, at) in [("REFRESH", 6), ("RETRY", 7), ("EXPIRE", 8), ("MINTTL", 9)] {
            zone.insert(name.into(), seconds(words.get(at)?).into());
        }
        return Some(());
    }
    let own;
    if words.first() == Some(&"IN") {
        own = origin.clone()?;
        words.insert(0, &own);
    }
    let mut name = (*words.first()?).to_owned();
    if !name.ends_with('.') && !words.contains(&"NS") {
        name = format!("{name}.{}", origin?);
    }
    let field = |at: usize| words.get(at).map(|word| Value::from(*word));
    match (words.get(2).copied()?, words.get(3).copied()) {
        ("NS", _) => push(zone, "NS", field(3)?),
        ("MX", _) => push(zone, "MX", map! {"priority" => field(3)?, "host" => field(4)?}.into()),
        (_, Some(kind @ ("A" | "AAAA"))) => {
            set(zone, kind, &name, map! {"TARGET" => field(4)?, "TTL" => field(1)?}.into());
        }
        (kind, _) => set(zone, kind, &name, field(3)?),
    }
    Some(())
}

fn push(zone: &mut Map, kind: &str, value: Value) {
    if let Value::List(all) = zone.entry(kind.into()).or_insert_with(|| list![]) {
        all.push(value);
    }
}

fn set(zone: &mut Map, kind: &str, name: &str, value: Value) {
    if let Value::Map(all) = zone.entry(kind.into()).or_insert_with(|| Map::new().into()) {
        all.insert(name.into(), value);
    }
}

fn seconds(text: &str) -> u64 {
    let text = text.to_uppercase();
    let number = |unit: char, factor: u64| text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(factor);
    let read = number('H', 3600).or_else(|| number('D', 86_400)).or_else(|| text.parse().ok());
    read.unwrap_or(WEEK).min(WEEK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_files_are_parsed() {
        let text = "$TTL 86400\nexample.org. IN SOA ns.example.org. admin.example.org. (\n 2026010101 ; serial\n 6H 3600 4W 1D )\n\
                    @ IN NS ns.example.org.\n IN MX 10 mail.example.org.\nwww 300 IN A 192.0.2.1\nweb IN CNAME www\n";
        let zone = parse(text).unwrap();
        for (name, value) in [
            ("TTL", Value::from("86400")),
            ("ORIGIN", "example.org.".into()),
            ("CONTACT", "admin@example.org.".into()),
            ("SERIAL", "2026010101".into()),
            ("REFRESH", 21_600.into()),
            ("EXPIRE", 604_800.into()),
            ("MINTTL", 86_400.into()),
            ("NS", list!["ns.example.org."]),
            ("MX", list![map! {"priority" => "10", "host" => "mail.example.org."}]),
            ("A", map! {"www.example.org." => map! {"TARGET" => "192.0.2.1", "TTL" => "300"}}.into()),
            ("CNAME", map! {"web.example.org." => "www"}.into()),
        ] {
            assert_eq!(zone.get(name), Some(&value), "{name}");
        }
        for wrong in ["www IN A", "a", "@ SOA", "x IN SOA a"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
