//! Who may send which field of a request: the one list of the fields that requests to publish jobs, and requests of
//! minions on behalf of others, may carry. A field that is not listed is dropped.

/// Who may send a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Everybody who may send the request: the function, its target and arguments, which the permissions for functions
    /// cover, and the credentials.
    Call,
    /// Everybody: how the client waits for results and shows them.
    Display,
    /// Everybody, up to a number of seconds that the configuration sets; beyond it, users with a permission.
    Seconds,
    /// Users with a permission: changes how minions run the function, or where its results go.
    Permission,
    /// The tools of the master alone.
    Internal,
}

/// Returns the rule of an option of a publish request (its field `kwargs`, and `ret`); `None` for unknown options.
pub fn rule_of_option(name: &str) -> Option<Rule> {
    let rule = match name {
        // A part of the target.
        "delimiter" => Rule::Call,
        // Also fields that Salt's clients repeat in the options.
        "arg" | "fun" | "jid" | "kwarg" | "tgt" | "tgt_type" | "expr_form" | "async" | "batch" | "batch_size"
        | "cli" | "client" | "eauth" | "expect_minions" | "failhard" | "full_return" | "ignore_retcode" | "listen"
        | "password" | "print_event" | "progress" | "raw" | "return_address" | "show_jid" | "show_timeout" | "sub"
        | "subset" | "token" | "user" | "username" | "verbose" | "_reads_no_files" => Rule::Display,
        "timeout" | "gather_job_timeout" | "batch_wait" | "to" => Rule::Seconds,
        "ret" | "ret_config" | "ret_kwargs" | "metadata" | "module_executors" | "executor_opts" | "start_event" => {
            Rule::Permission
        }
        super::AUTH_LIST | super::MASTER_ID | "id" => Rule::Internal,
        _ if name.starts_with('_') => Rule::Internal,
        _ => return None,
    };
    Some(rule)
}

/// The fields of the commands that act in the name of others: the rest of these requests has no effect.
const COMMANDS: &[(&str, &[&str])] = &[
    ("publish", &["fun", "arg", "tgt", "tgt_type", "ret", "jid", "key", "user", "kwargs", "to"]),
    (
        "runner",
        &[
            "fun",
            "arg",
            "kwarg",
            "key",
            "user",
            "async",
            "jid",
            "client",
            "token",
            "eauth",
            "username",
            "password",
            "full_return",
            "print_event",
            "timeout",
        ],
    ),
    ("minion_pub", PEER),
    ("minion_publish", PEER),
    ("minion_runner", &["fun", "arg", "id", "timeout", "tmo", "no_parse"]),
];

/// The fields of a minion's request to publish a job.
const PEER: &[&str] =
    &["fun", "arg", "tgt", "tgt_type", "ret", "id", "timeout", "tmo", "form", "no_parse", "to", "user"];

/// The fields of all requests.
const ENVELOPE: &[&str] = &["cmd", "tok", "nonce", "serial", "ts"];

/// Returns the fields of a request that have no effect, of the commands that act in the name of others.
pub fn unknown_fields<'a>(command: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let Some((_, known)) = COMMANDS.iter().find(|(name, _)| *name == command) else { return Vec::new() };
    names.filter(|name| !known.contains(name) && !ENVELOPE.contains(name) && !name.starts_with("__")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_that_reaches_minions_is_ruled() {
        for name in crate::LOAD_OPTIONS {
            assert!(!matches!(rule_of_option(name), None | Some(Rule::Display)), "{name}");
        }
        for name in ["x", "", "ret ", "RET", "returner"] {
            assert_eq!(rule_of_option(name), None, "{name}");
        }
        assert_eq!(rule_of_option("_cause"), Some(Rule::Internal));
    }

    #[test]
    fn unknown_fields_are_found_in_requests_on_behalf_of_others() {
        let fields = ["cmd", "fun", "arg", "tgt", "ret", "evil"];
        for (command, unknown) in [("publish", vec!["evil"]), ("minion_pub", vec!["evil"]), ("_return", vec![])] {
            assert_eq!(unknown_fields(command, fields.into_iter()), unknown, "{command}");
        }
        assert_eq!(unknown_fields("minion_runner", fields.into_iter()), ["tgt", "ret", "evil"]);
    }
}
