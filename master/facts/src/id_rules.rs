//! Options with rules by minion id, such as `peer` and `mine_get`: mappings of regular expressions to lists.

use brine_ids::MinionId;
use brine_target::Pcre;
use brine_value::{Map, Value};

/// Returns the rules of a minion in an option such as `peer`: of all patterns that match at the start of its id.
pub fn rules_for<'a>(option: &'a Map, id: &MinionId) -> Vec<&'a Value> {
    let matching = option.iter().filter(|(pattern, _)| is_match(&pattern.to_string(), id.as_str()));
    matching.filter_map(|(_, rules)| rules.as_list()).flatten().collect()
}

/// Returns whether a regular expression matches at the start of a text, as Python's `re.match`. An invalid one matches
/// nothing.
pub fn is_match(pattern: &str, text: &str) -> bool {
    match Pcre::parse(pattern) {
        Ok(pattern) => pattern.is_match(text),
        Err(error) => {
            tracing::error!(%error, "a rule for peers is invalid: it is skipped");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn all_patterns_that_match_at_the_start_apply() {
        let option =
            map! {"web" => list!["a"], ".*" => list!["b"], "db" => list!["c"], "(" => list!["d"], "web1" => "e"};
        let id: MinionId = "web1".parse().unwrap();
        assert_eq!(rules_for(&option, &id), [&Value::from("a"), &Value::from("b")]);
    }
}
