//! The roster `clustershell`: the target is a node set of ClusterShell, such as `web[1-40],@db`. It is expanded by
//! ClusterShell's own program `nodeset`, which resolves the node groups of the machine.

use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;

use brine_host::process::Children;
use brine_host::programs::{Programs, program};
use brine_target::TargetKind;
use brine_value::{Value, map};
use tokio_util::sync::CancellationToken;

use super::{Fields, MAX_HOSTS, RosterError, scan};

/// The name of ClusterShell's program.
const NODESET: &str = "nodeset";
/// The timeout of the program: sources of node groups may be commands.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of its list, in bytes.
const MAX_LIST: usize = 16 << 20;
/// The operators that combine node sets.
const OPERATORS: &[char] = &[',', '!', '&', '^', ' '];

/// Returns the fields of the hosts of a node set. As in Salt, the port of a host is the first one that answers, else
/// the default. Unlike in Salt, a host keeps its name instead of an address, since `ssh` stores host keys by name.
pub(super) fn hosts(
    programs: &dyn Programs,
    tgt: &Value,
    kind: TargetKind,
    (ports, timeout): &(Vec<u16>, Duration),
) -> Result<Fields, RosterError> {
    if !matches!(kind, TargetKind::Glob | TargetKind::List) {
        let message = "the roster 'clustershell' takes a node set of ClusterShell as target, not a target of type";
        return Err(RosterError::Program(format!("{message} {kind}")));
    }
    let set = match tgt {
        Value::List(sets) => sets.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    let names = expanded(programs, &set)?;
    let mut hosts: Fields = names.iter().map(|name| (name.clone(), map! {"host" => name.as_str()})).collect();
    let address = |name: &String| -> Option<IpAddr> {
        (name.as_str(), 0).to_socket_addrs().ok().and_then(|mut all| all.next()).map(|one| one.ip())
    };
    for (name, port) in scan::listening(names, address, ports, *timeout) {
        if let Some(fields) = hosts.get_mut(&name) {
            fields.insert("port".into(), i64::from(port).into());
        }
    }
    Ok(hosts)
}

/// Expands a node set to the names of its nodes.
fn expanded(programs: &dyn Programs, set: &str) -> Result<Vec<String>, RosterError> {
    let failed = |reason: &str| RosterError::Program(format!("the node set '{}': {reason}", set.escape_debug()));
    // ClusterShell inserts names of groups into shell commands.
    if !set.chars().all(|c| c.is_alphanumeric() || "-_.:@[]/*?%~".contains(c) || OPERATORS.contains(&c)) {
        return Err(failed("it has a character that no node set has"));
    }
    let too_many = format!("it has more than {MAX_HOSTS} hosts");
    if size(set) > MAX_HOSTS as u64 {
        return Err(failed(&too_many));
    }
    let words = [NODESET, "-e", "-S", "\n", "--", set].map(str::to_owned);
    let mut command = program(&words, &[]);
    (command.timeout, command.output_limit) = (Some(TIMEOUT), Some(MAX_LIST));
    let output = programs.run(&command, &Children::default(), &CancellationToken::new()).map_err(|error| {
        RosterError::Program(format!("the roster 'clustershell' needs the program {NODESET} of ClusterShell: {error}"))
    })?;
    if output.timed_out {
        return Err(failed(&format!("{NODESET} has not ended within {} seconds", TIMEOUT.as_secs())));
    }
    if output.retcode != 0 {
        return Err(failed(output.stderr.lines().last().unwrap_or("it is invalid").trim()));
    }
    let names: Vec<String> = output.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if names.len() > MAX_HOSTS { Err(failed(&too_many)) } else { Ok(names) }
}

/// Returns an upper bound on the number of names in a node set: ClusterShell holds all of them in memory.
fn size(set: &str) -> u64 {
    let (mut sum, mut product, mut ranges) = (0_u64, 1_u64, None::<String>);
    for c in set.chars() {
        match (&mut ranges, c) {
            (None, '[') => ranges = Some(String::new()),
            (Some(inner), ']') => {
                product = product.saturating_mul(inner.split(',').map(range_size).fold(0, u64::saturating_add));
                ranges = None;
            }
            (Some(inner), c) => inner.push(c),
            (None, c) if OPERATORS.contains(&c) => (sum, product) = (sum.saturating_add(product), 1),
            (None, _) => {}
        }
    }
    sum.saturating_add(product)
}

/// Returns the number of integers in a range such as `7`, `1-40` or `0-40/2`; 1 for other text, which ClusterShell
/// rejects.
fn range_size(range: &str) -> u64 {
    let (bounds, step) = range.split_once('/').unwrap_or((range, "1"));
    let Some((from, to)) = bounds.split_once('-') else { return 1 };
    // Numbers beyond 64 bits are too large in any case.
    let number = |text: &str| text.trim().parse::<u64>().unwrap_or(u64::MAX);
    let from = from.trim().parse().unwrap_or_default();
    (number(to).saturating_sub(from) / number(step).max(1)).saturating_add(1)
}

#[cfg(test)]
mod tests;
