//! The fields of requests that act in the name of others: the one table of them.

/// The fields of all requests.
const ENVELOPE: &[&str] = &["cmd", "tok", "nonce", "serial", "ts"];

/// The fields of a request to publish a job.
const PUBLISH: &[&str] = &["fun", "arg", "tgt", "tgt_type", "ret", "jid", "key", "user", "kwargs", "to"];

/// The fields of a call of a runner or wheel function. Salt's clients send the arguments of wheel functions beside
/// them.
const CALL: &[&str] = &[
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
];

/// The fields of a minion's request to publish a job.
const PEER: &[&str] =
    &["fun", "arg", "tgt", "tgt_type", "ret", "id", "timeout", "tmo", "form", "no_parse", "to", "user"];

/// The fields of a minion's call of a runner function.
const PEER_RUN: &[&str] = &["fun", "arg", "id", "timeout", "tmo", "no_parse"];

/// Returns the fields of a request that have no effect, of the commands that act in the name of others.
pub fn unknown_fields<'a>(command: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let fields = match command {
        "publish" => PUBLISH,
        "runner" => CALL,
        "minion_pub" | "minion_publish" => PEER,
        "minion_runner" => PEER_RUN,
        _ => return Vec::new(),
    };
    names.filter(|name| !fields.contains(name) && !ENVELOPE.contains(name) && !name.starts_with("__")).collect()
}

/// Whether a field of a `wheel` command of Salt's clients is an argument of the function. They send no job id, so `jid`
/// is one.
pub(crate) fn is_wheel_argument(name: &str) -> bool {
    let is_of_the_call = (CALL.contains(&name) && name != "jid") || ["cmd", "nonce"].contains(&name);
    !is_of_the_call && !name.starts_with("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_found_in_requests_on_behalf_of_others() {
        let fields = ["cmd", "fun", "arg", "tgt", "ret", "evil"];
        for (command, unknown) in [("publish", vec!["evil"]), ("minion_pub", vec!["evil"]), ("_return", vec![])] {
            assert_eq!(unknown_fields(command, fields.into_iter()), unknown, "{command}");
        }
        assert_eq!(unknown_fields("minion_runner", fields.into_iter()), ["tgt", "ret", "evil"]);
    }

    #[test]
    fn fields_of_a_call_are_no_arguments_of_wheel_functions() {
        for (name, is_argument) in
            [("match", true), ("jid", true), ("serial", true), ("fun", false), ("password", false), ("__jid__", false)]
        {
            assert_eq!(is_wheel_argument(name), is_argument, "{name}");
        }
    }
}
