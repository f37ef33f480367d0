//! Builds a rule of iptables from options with its long names.

use brine_function::CallError;
use brine_value::{Map, Value};

use crate::firewalls::listed;

/// Options that come first, with their names on the command line.
const LEADING_OPTIONS: [(&str, &str); 2] = [("if", "-i"), ("of", "-o")];

/// Options of targets: they follow the target, which comes last.
const TARGET_OPTIONS: &[&str] = &[
    "j",
    "jump",
    "add-set",
    "and-mark",
    "and-tos",
    "checksum-fill",
    "clamp-mss-to-pmtu",
    "clustermac",
    "ctevents",
    "ctmask",
    "del-set",
    "ecn-tcp-remove",
    "exist",
    "expevents",
    "gateway",
    "hash-init",
    "hashmode",
    "helper",
    "label",
    "local-node",
    "log-ip-options",
    "log-level",
    "log-prefix",
    "log-tcp-options",
    "log-tcp-sequence",
    "log-uid",
    "map-set",
    "mask",
    "mss",
    "new",
    "nfmask",
    "nflog-group",
    "nflog-prefix",
    "nflog-range",
    "nflog-threshold",
    "nodst",
    "notrack",
    "on-ip",
    "on-port",
    "or-mark",
    "or-tos",
    "persistent",
    "queue-balance",
    "queue-bypass",
    "queue-num",
    "random",
    "random-fully",
    "rateest-ewmalog",
    "rateest-interval",
    "rateest-name",
    "reject-with",
    "restore",
    "restore-mark",
    "sack-perm",
    "save-mark",
    "selctx",
    "set-class",
    "set-dscp",
    "set-dscp-class",
    "set-mark",
    "set-mss",
    "set-tos",
    "set-xmark",
    "strip-options",
    "timeout",
    "timestamp",
    "to",
    "to-destination",
    "to-ports",
    "to-source",
    "total-nodes",
    "tproxy-mark",
    "ttl-dec",
    "ttl-inc",
    "ttl-set",
    "type",
    "ulog-cprange",
    "ulog-nlgroup",
    "ulog-prefix",
    "ulog-qthreshold",
    "wscale",
    "xor-mark",
    "xor-tos",
    "zone",
    "zone-orig",
    "zone-reply",
    "dst-pfx",
    "hl-dec",
    "hl-inc",
    "hl-set",
    "hmark-dport-mask",
    "hmark-dst-prefix",
    "hmark-mod",
    "hmark-offset",
    "hmark-proto-mask",
    "hmark-rnd",
    "hmark-spi-mask",
    "hmark-sport-mask",
    "hmark-src-prefix",
    "hmark-tuple",
    "led-always-blink",
    "led-delay",
    "led-trigger-id",
    "queue-cpu-fanout",
    "src-pfx",
    "to-port",
    "addr",
    "and-mask",
    "delude",
    "honeypot",
    "or-mask",
    "prefix",
    "reset",
    "reuse",
    "set-mac",
    "shift",
    "static",
    "tarpit",
    "tname",
    "ttl",
];

/// Matches with a name argument, which is passed as `name_`.
const NAMED_MATCHES: [&str; 3] = ["pknock", "quota2", "recent"];

/// Builds a rule. The error is a message.
pub fn build(mut options: Map) -> Result<String, String> {
    if let Some(target) = options.shift_remove("target") {
        options.insert("jump".into(), target);
    }
    // Arguments of a state or job are not options of the rule.
    let own = ["name", "state", "chain", "save", "table"];
    options.retain(|name, _| name.as_str().is_some_and(|name| !own.contains(&name) && !name.starts_with("__")));
    let mut parts: Vec<String> = Vec::new();
    for (name, flag) in LEADING_OPTIONS {
        parts.extend(options.shift_remove(name).map(|value| option(flag, &value)));
    }
    let of_policy = options.get("match").and_then(Value::as_str) == Some("policy");
    if !of_policy && let Some(protocol) = options.shift_remove("proto") {
        options.insert("protocol".into(), protocol);
    }
    let protocol = options.shift_remove("protocol");
    parts.extend(protocol.as_ref().map(|protocol| option("-p", protocol)));
    if let Some(matches) = options.shift_remove("match") {
        for name in listed(&matches) {
            parts.push(format!("-m {name}"));
            if NAMED_MATCHES.contains(&name.trim())
                && let Some(own) = options.shift_remove("name_")
            {
                parts.push(format!("--name {own}"));
            }
        }
        if of_policy {
            parts.extend(options.shift_remove("proto").map(|protocol| option("--proto", &protocol)));
        }
    }
    if let Some(sets) = options.shift_remove("match-set") {
        let one = [sets.clone()];
        for set in sets.as_list().unwrap_or(&one) {
            parts.push(format!("-m set {}", option("--match-set", set)));
        }
    }
    if let Some(state) = options.shift_remove("connstate") {
        with_match(&mut parts, "state");
        parts.push(option("--state", &state));
    }
    for port in ["dport", "sport"] {
        parts.extend(options.shift_remove(port).map(|value| option(&format!("--{port}"), &value)));
    }
    for ports in ["dports", "sports"] {
        let Some(value) = options.shift_remove(ports) else { continue };
        if with_match(&mut parts, "multiport") && protocol.is_none() {
            return Err("Error: protocol must be specified".into());
        }
        let one = [value.clone()];
        let all: Vec<(bool, String)> = value.as_list().unwrap_or(&one).iter().map(negated).collect();
        let not = if all.iter().any(|(not, _)| *not) { "! " } else { "" };
        let all: Vec<String> = all.into_iter().map(|(_, port)| port).collect();
        parts.push(format!("{not}--{ports} {}", all.join(",")));
    }
    if let Some(comment) = options.shift_remove("comment") {
        with_match(&mut parts, "comment");
        parts.push(format!("--comment \"{comment}\""));
    }
    if options.get("set").is_some_and(Value::is_truthy)
        && let Some(set) = options.shift_remove("set")
    {
        parts.push(option("--match-set", &set));
    }
    let mut of_target = Vec::new();
    for name in TARGET_OPTIONS {
        let Some(value) = options.shift_remove(*name) else { continue };
        let text = if value.is_nil() { String::new() } else { value.to_string() };
        of_target.push(match text.as_str() {
            "" => format!("--{name}"),
            text if text.contains(char::is_whitespace) => format!("--{name} \"{text}\""),
            text => format!("--{name} {text}"),
        });
    }
    for (name, value) in &options {
        let name = name.to_string();
        let flag = if name.chars().count() == 1 { format!("-{name}") } else { format!("--{name}") };
        parts.push(option(&flag, value));
    }
    parts.extend(of_target);
    Ok(parts.join(" "))
}

/// Returns whether a value is negated, and the value itself: `!x`, `not x`.
fn negated(value: &Value) -> (bool, String) {
    let text = if value.is_nil() { String::new() } else { value.to_string() };
    match text.strip_prefix('!').or_else(|| text.strip_prefix("not")) {
        Some(rest) => (true, rest.strip_prefix(' ').unwrap_or(rest).to_owned()),
        None => (false, text),
    }
}

/// Formats an option with its value, if it has one.
fn option(flag: &str, value: &Value) -> String {
    let (not, text) = negated(value);
    let not = if not { "! " } else { "" };
    if text.is_empty() { format!("{not}{flag}") } else { format!("{not}{flag} {text}") }
}

/// Adds a match unless it is present, and returns whether it was added.
fn with_match(parts: &mut Vec<String>, name: &str) -> bool {
    let part = format!("-m {name}");
    let is_new = !parts.contains(&part);
    if is_new {
        parts.push(part);
    }
    is_new
}

/// Checks that the name of a chain or policy, where iptables takes none, too, cannot be an option.
pub(super) fn name(name: &str) -> Result<&str, CallError> {
    if name.starts_with('-') {
        return Err(CallError::execution(format!("'{name}' is not a name: it starts with '-'")));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn rules_are_in_iptables_syntax() {
        for (options, rule) in [
            (
                map! {"jump" => "ACCEPT", "match" => "state", "connstate" => "NEW", "dport" => 80, "proto" => "tcp"},
                "-p tcp -m state --state NEW --dport 80 --jump ACCEPT",
            ),
            (
                map! {"source" => "!127.0.0.1", "jump" => "DROP", "if" => "not eth0"},
                "! -i eth0 ! --source 127.0.0.1 --jump DROP",
            ),
            (map! {"dports" => list![80, 443], "protocol" => "tcp"}, "-p tcp -m multiport --dports 80,443"),
            (map! {"sports" => "!22", "protocol" => "tcp"}, "-p tcp -m multiport ! --sports 22"),
            (
                map! {"match" => list!["comment", "recent"], "name_" => "x", "comment" => "a b"},
                "-m comment -m recent --name x --comment \"a b\"",
            ),
            (
                map! {"target" => "LOG", "log-prefix" => "in: x", "s" => "10.0.0.1"},
                "-s 10.0.0.1 --jump LOG --log-prefix \"in: x\"",
            ),
            (map! {"match" => "policy", "proto" => "esp"}, "-m policy --proto esp"),
            (map! {"match-set" => list!["a src", "!b dst"]}, "-m set --match-set a src -m set ! --match-set b dst"),
            (
                map! {"name" => "n", "save" => true, "__pub_fun" => "x", "notrack" => "", "jump" => "CT"},
                "--jump CT --notrack",
            ),
        ] {
            assert_eq!(build(options).unwrap(), rule);
        }
        assert_eq!(build(map! {"dports" => 80}).unwrap_err(), "Error: protocol must be specified");
    }
}
