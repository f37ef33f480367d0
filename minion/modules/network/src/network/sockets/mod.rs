//! `network`: open sockets, and queries of name servers.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::Program;
use brine_host::programs::{argument, program};
use brine_value::{Map, Value, map};

/// Execution functions of `network`.
pub static FUNCTIONS: Functions<Context> = registry!("network", [netstat, dig]);

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
pub fn dig(
    context: &Context,
    /// Host name or address.
    host: String,
) -> CallResult {
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
mod tests;
