//! Entries that can never permit anything, such as those with a mistake in their indentation. They are no error when
//! they are read: the user is refused.

use brine_target::{Pcre, Target, TargetKind};
use brine_value::{Map, Value};

use super::{EVENTS, OPTIONS, one_or_many};

/// Returns the reasons why entries of a user, as written in the configuration, permit nothing.
pub fn ineffective(entries: &Value, nodegroups: &Map) -> Vec<String> {
    match entries {
        Value::List(entries) if !entries.is_empty() => {
            entries.iter().filter_map(|entry| of_entry(entry, nodegroups)).collect()
        }
        Value::List(_) | Value::Nil => vec!["there are no entries".to_owned()],
        other => vec![format!("expected a list of entries, got '{other}'")],
    }
}

fn of_entry(entry: &Value, nodegroups: &Map) -> Option<String> {
    match entry {
        Value::Str(text) => match text.strip_prefix('@') {
            Some(OPTIONS) => None,
            Some(scope) => of_scope(scope),
            None => of_function(text),
        },
        Value::Map(map) if map.contains_key(EVENTS) => None,
        Value::Map(map) if map.len() == 1 => map.iter().next().and_then(|(key, rules)| {
            let key = key.to_string();
            match key.strip_prefix('@') {
                Some(OPTIONS) => return None,
                Some(scope) => of_scope(scope),
                None => {
                    let target = Target::parse(TargetKind::Compound, Value::from(key.as_str()), ":", nodegroups);
                    target.and_then(|target| target.sensible(":")).err().map(|error| error.to_string())
                }
            }
            .or_else(|| of_rules(&key, rules))
        }),
        other => Some(format!("'{other}' is invalid: expected a string or a mapping with one key")),
    }
}

fn of_rules(key: &str, rules: &Value) -> Option<String> {
    let rules = one_or_many(rules);
    if rules.iter().all(Value::is_nil) {
        return Some(format!("'{key}' has no functions"));
    }
    rules.iter().find_map(|rule| match rule {
        Value::Str(text) => of_function(text),
        Value::Map(map) => map.keys().find_map(|function| of_function(&function.to_string())),
        other => Some(format!("'{other}' below '{key}' is invalid: expected a string or a mapping")),
    })
}

/// Checks the scope of `@scope`: a kind or a module.
fn of_scope(scope: &str) -> Option<String> {
    let (kind, function) = scope.split_once('.')?;
    Some(format!("'@{scope}' names neither a kind nor a module: write '@{kind}': [{function}]"))
}

/// Checks a regular expression for names of functions.
fn of_function(text: &str) -> Option<String> {
    if text.contains(char::is_whitespace) {
        return Some(format!("'{text}' matches no function: it has a blank, as if a line below it were indented"));
    }
    Pcre::parse(text).err().map(|error| format!("'{text}' is an invalid regular expression: {error}"))
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn glued_parentheses_in_targets_are_refused() {
        for (target, word) in [
            ("( web* or db* )", None),
            ("G@os:Debian and not ( web1 or web2 )", None),
            ("E@(web|db)1", None),
            ("( E@(web|db)1 or N@webs )", None),
            ("(web*)", Some("(web*)")),
            ("(web1 or web2)", Some("(web1")),
            ("( web1 or web2)", Some("web2)")),
            ("G@os:Debian and not (web1)", Some("(web1)")),
            ("not(web1)", Some("not(web1)")),
            ("web* and (N@webs)", Some("(N@webs)")),
            ("( web* or G@os:Debian)", Some("G@os:Debian)")),
            ("N@glued", Some("(web1")),
        ] {
            let groups = map! {"webs" => "web*", "glued" => "(web1 or web2)"};
            let reasons = ineffective(&list![map! {target => list!["test.ping"]}], &groups);
            match word {
                None => assert_eq!(reasons, Vec::<String>::new(), "{target}"),
                Some(word) => {
                    assert_eq!(reasons.len(), 1, "{target}: {reasons:?}");
                    for part in [word, "a parenthesis needs a blank before and after it"] {
                        assert!(reasons[0].contains(part), "{target}: {reasons:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn entries_that_permit_nothing_are_named() {
        for (entries, expected) in [
            (list!["test.*", "@runner", "@jobs", "@options"], ""),
            (list![map! {"web*" => list!["test.ping", map! {"cmd.run" => map! {}}]}], ""),
            (list![map! {"@wheel" => list!["key.list"]}, map! {"events" => list!["a/*"]}], ""),
            (list![map! {"N@webs" => "test.ping"}], ""),
            ("test.ping".into(), "expected a list of entries, got 'test.ping'"),
            (Value::Nil, "there are no entries"),
            (list![], "there are no entries"),
            (list![".* - test.ping"], "'.* - test.ping' matches no function"),
            (
                list!["@wheel.key.list"],
                "'@wheel.key.list' names neither a kind nor a module: write '@wheel': [key.list]",
            ),
            (list![map! {"@runner.test" => list!["x"]}], "'@runner.test' names neither"),
            (list!["*"], "'*' is an invalid regular expression"),
            (list![map! {"web*" => list!["*"]}], "'*' is an invalid regular expression"),
            (list![map! {"web*" => Value::Nil}], "'web*' has no functions"),
            (list![map! {"web* and" => list!["test.ping"]}], "the target 'web* and' is invalid"),
            (list![map! {"N@nope" => list!["test.ping"]}], "nope"),
            (list![list!["test.ping"]], "is invalid: expected a string or a mapping with one key"),
            (list![map! {"a" => list!["x"], "b" => list!["y"]}], "expected a string or a mapping with one key"),
        ] {
            let reasons = ineffective(&entries, &map! {"webs" => "web*"});
            assert_eq!(reasons.is_empty(), expected.is_empty(), "{entries}: {reasons:?}");
            assert!(reasons.iter().all(|reason| reason.contains(expected)), "{entries}: {reasons:?}");
        }
    }
}
