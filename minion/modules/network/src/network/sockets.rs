//! `network`: open sockets, and queries of name servers.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{CallError, CallResult, Function, function, registry};
use brine_host::process::Program;
use brine_host::programs::{argument, program};
use brine_value::{Map, Value, map};

/// Execution functions of `network`.
pub static FUNCTIONS: &[Function<Context>] = registry!("network", [netstat, dig]);

/// Return the open sockets with their processes, as reported by `netstat`, or by `ss` without it.
///
/// CLI Example:
///
///     salt '*' network.netstat
#[function]
pub fn netstat(context: &Context) -> CallResult {
    let (program, row): (_, fn(&str) -> Option<Map>) = match context.minion.programs.find("netstat") {
        Some(_) => ("netstat", of_netstat),
        None => ("ss", of_ss),
    };
    let output = run(context, &[program.into(), "-tulpnea".into()], &[("LC_ALL", "C")])?;
    Ok(output.stdout.lines().filter_map(row).collect())
}

/// Return the output of `dig` about a name.
///
/// CLI Example:
///
///     salt '*' network.dig archlinux.org
#[function]
pub fn dig(context: &Context, host: String) -> CallResult {
    if context.minion.programs.find("dig").is_none() {
        // As in Salt, an answer without the prefix of errors.
        context.set_retcode(1);
        return Ok("Command required for 'network.dig' not found: The 'dig' binary was not found in $PATH.".into());
    }
    let program = Program { merge: true, ..program(&["dig".into(), argument(&host_name(host))?], &[]) };
    let output = context.run_program(&program).map_err(CallError::execution)?;
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
    }
    Ok(output.stdout.into())
}

/// Returns an IP address unchanged; of any other string, only the characters that are valid in host names.
pub(super) fn host_name(host: String) -> String {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || ".-_".contains(*c);
    if host.parse::<std::net::IpAddr>().is_ok() { host } else { host.chars().take(255).filter(is_part).collect() }
}

/// Parses a line of `netstat -tulpnea`. As in Salt, only TCP sockets are reported with their state.
fn of_netstat(line: &str) -> Option<Map> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let names: &[&str] = match words.first()? {
        proto if proto.starts_with("tcp") => {
            &["proto", "recv-q", "send-q", "local-address", "remote-address", "state", "user", "inode", "program"]
        }
        proto if proto.starts_with("udp") => {
            &["proto", "recv-q", "send-q", "local-address", "remote-address", "user", "inode", "program"]
        }
        _ => return None,
    };
    // Drop the state of a connected UDP socket.
    let words: Vec<&str> = match names.len() {
        8 if words.get(5) == Some(&"ESTABLISHED") => {
            words.iter().copied().filter(|word| *word != "ESTABLISHED").collect()
        }
        _ => words,
    };
    (words.len() >= names.len())
        .then(|| names.iter().zip(words).map(|(name, word)| ((*name).into(), word.into())).collect())
}

/// Parses a line of `ss -tulpnea`.
fn of_ss(line: &str) -> Option<Map> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [proto, state, received, sent, local, remote, rest @ ..] = &words[..] else { return None };
    let mut report = map! {
        "proto" => *proto, "recv-q" => *received, "send-q" => *sent, "local-address" => *local,
        "remote-address" => *remote,
    };
    match *proto {
        "tcp" => {
            let state = if *state == "ESTAB" { "ESTABLISHED" } else { state };
            report.insert("state".into(), state.into());
        }
        "udp" => {}
        _ => return None,
    }
    let field = |name: &str| rest.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'));
    let number = |name: &str| field(name).map_or_else(|| Value::from(0), Value::from);
    let program = field("users").and_then(|users| users.split('"').nth(1)).unwrap_or_default();
    report.insert("user".into(), number("uid"));
    report.insert("inode".into(), number("ino"));
    report.insert("program".into(), program.into());
    Some(report)
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;
    use crate::testing::{Scripted, answers, context_with};

    // As written by net-tools 2.10 and iproute2 6.1.
    #[test]
    fn sockets_are_listed() {
        let programs = Scripted::new(
            "
            $ netstat -tulpnea
            | Active Internet connections (servers and established)
            | Proto Recv-Q Send-Q Local Address           Foreign Address         State       User       Inode      PID/Program name
            | tcp        0      0 0.0.0.0:2024            0.0.0.0:*               LISTEN      0          555        812/sshd
            | udp        0      0 0.0.0.0:68              0.0.0.0:*                           0          556        -
            | udp        0      0 10.0.0.1:50             10.0.0.2:53             ESTABLISHED 100        557        9/x
            $ dig ex_ample.org
            | ;; ANSWER SECTION:
            $ dig ::1
            | ;; ANSWER SECTION:
            $ dig none
            | ;; communications error to 127.0.0.1#53: connection refused
            = 9
            ",
        );
        let context = context_with(map! {}, programs);
        insta::assert_snapshot!(answers(&context, &[
            ("network.netstat", list![], map! {}),
            ("network.dig", list!["+@ex_ample.org; "], map! {}),
            ("network.dig", list!["::1"], map! {}),
            ("network.dig", list!["-f/etc/shadow"], map! {}),
            ("network.dig", list!["none"], map! {}),
        ]), @r#"
        network.netstat: [{"proto": "tcp", "recv-q": "0", "send-q": "0", "local-address": "0.0.0.0:2024", "remote-address": "0.0.0.0:*", "state": "LISTEN", "user": "0", "inode": "555", "program": "812/sshd"}, {"proto": "udp", "recv-q": "0", "send-q": "0", "local-address": "0.0.0.0:68", "remote-address": "0.0.0.0:*", "user": "0", "inode": "556", "program": "-"}, {"proto": "udp", "recv-q": "0", "send-q": "0", "local-address": "10.0.0.1:50", "remote-address": "10.0.0.2:53", "user": "100", "inode": "557", "program": "9/x"}]
        network.dig: ";; ANSWER SECTION:"
        network.dig: ";; ANSWER SECTION:"
        network.dig: ERROR: '-fetcshadow' cannot be used: it starts with '-' or is empty
        network.dig: ";; communications error to 127.0.0.1#53: connection refused"
        "#);
        let line = "tcp   ESTAB 0      128          0.0.0.0:2024      0.0.0.0:*    users:((\"sshd\",pid=812,fd=3)) uid:7 ino:555 sk:1";
        insta::assert_snapshot!(brine_value::json::to_json(&of_ss(line).unwrap().into()), @r#"
        {"proto": "tcp", "recv-q": "0", "send-q": "128", "local-address": "0.0.0.0:2024", "remote-address": "0.0.0.0:*", "state": "ESTABLISHED", "user": "7", "inode": "555", "program": "sshd"}
        "#);
        assert_eq!(of_ss("Netid State  Recv-Q Send-Q Local Address:Port Peer Address:PortProcess"), None);
    }
}
