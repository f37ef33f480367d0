//! Who may send which option of a request to publish a job. An option that is not listed is dropped;
//! `core/net/wire/src/fields.rs` lists the fields beside the options.

/// Who may send an option.
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
}
