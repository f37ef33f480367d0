//! The output of `iptables-save`.

use brine_host::process::split;
use brine_value::{Map, Value, list, map};

/// Parses the tables: by chain the policy, counters and rules, each rule by its options.
pub fn parse(text: &str) -> Map {
    let mut tables = Map::new();
    let mut table = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('*') {
            name.clone_into(&mut table);
            tables.insert(name.into(), Value::map());
            continue;
        }
        let Some(chains) = tables.get_mut(table.as_str()).and_then(Value::as_map_mut) else { continue };
        if let Some(chain) = line.strip_prefix(':') {
            let mut words = chain.split_whitespace();
            let (Some(name), Some(policy)) = (words.next(), words.next()) else { continue };
            let counters = words.next().unwrap_or_default().trim_matches(['[', ']']);
            let (packets, bytes) = counters.split_once(':').unwrap_or_default();
            let chain = map! {
                "policy" => policy, "packet count" => packets, "byte count" => bytes, "rules" => list![],
                "rules_comment" => map! {},
            };
            chains.insert(name.into(), chain.into());
        } else if line.starts_with("-A") {
            add(chains, line);
        }
    }
    tables
}

/// Adds a rule to its chain.
fn add(chains: &mut Map, line: &str) {
    let Some(words) = split(line) else { return };
    let mut rule = options(&words);
    let Some(Value::List(chain)) = rule.shift_remove("append") else { return };
    let chain = chain.first().and_then(Value::as_str).unwrap_or_default();
    let Some(chain) = chains.get_mut(chain).and_then(Value::as_map_mut) else { return };
    let comment = rule.get("comment").and_then(Value::as_list).and_then(|comment| comment.first()).cloned();
    if let (Some(comment), Some(by_comment)) = (comment, chain.get_mut("rules_comment").and_then(Value::as_map_mut)) {
        by_comment.insert(comment, rule.clone().into());
    }
    if let Some(Value::List(rules)) = chain.get_mut("rules") {
        rules.push(rule.into());
    }
}

/// Parses the options of a rule by their long names, each with all its values; a negated one begins with `! `.
fn options(words: &[String]) -> Map {
    let mut options = Map::new();
    let mut words = words.iter().peekable();
    let mut not = false;
    while let Some(word) = words.next() {
        if word == "!" {
            not = true;
            continue;
        }
        if !word.starts_with('-') {
            continue;
        }
        let mut value: Vec<&str> = if std::mem::take(&mut not) { vec!["!"] } else { Vec::new() };
        while let Some(next) = words.next_if(|next| *next != "!" && !next.starts_with('-')) {
            value.push(next);
        }
        let values = options.entry(long_name(word).into()).or_insert_with(|| list![]);
        if let Value::List(values) = values {
            values.push(value.join(" ").into());
        }
    }
    options
}

fn long_name(flag: &str) -> &str {
    match flag {
        "-A" => "append",
        "-p" => "protocol",
        "-s" => "source",
        "-d" => "destination",
        "-j" => "jump",
        "-g" => "goto",
        "-i" => "in-interface",
        "-o" => "out-interface",
        "-f" => "fragment",
        "-c" => "set-counters",
        "-m" => "match",
        "--sport" | "--source-port" => "source_port",
        "--dport" | "--destination-port" => "destination_port",
        "--sports" => "source-ports",
        "--dports" => "destination-ports",
        other => other.trim_start_matches('-'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_iptables_save_is_parsed() {
        let text = "# made by hand\n*filter\n:INPUT DROP [1:22]\n:mine - [0:0]\n\
                    -A INPUT ! -s 10.0.0.0/8 -p tcp -m comment --comment \"a \\\"b\\\"\" --dport 22 -j mine\n\
                    -A mine -j LOG --log-ip-options\n-A nowhere -j DROP\nCOMMIT\n";
        let rule = map! {
            "source" => list!["! 10.0.0.0/8"], "protocol" => list!["tcp"], "match" => list!["comment"],
            "comment" => list!["a \"b\""], "destination_port" => list!["22"], "jump" => list!["mine"],
        };
        let input = map! {
            "policy" => "DROP", "packet count" => "1", "byte count" => "22", "rules" => list![rule.clone()],
            "rules_comment" => map! {"a \"b\"" => rule},
        };
        let mine = map! {
            "policy" => "-", "packet count" => "0", "byte count" => "0",
            "rules" => list![map! {"jump" => list!["LOG"], "log-ip-options" => list![""]}], "rules_comment" => map! {},
        };
        assert_eq!(parse(text), map! {"filter" => map! {"INPUT" => input, "mine" => mine}});
        assert_eq!(parse("-A INPUT -j DROP\n:x y\n"), map! {});
    }
}
