//! The roster `sshknownhosts`: the hosts whose keys `ssh` has stored. Hashed names cannot be reversed and are skipped.

use std::path::Path;

use brine_value::{Map, map};

use super::{Fields, RosterError, read};

/// Returns the fields of the hosts, by their first names.
pub(super) fn hosts(path: &Path) -> Result<Fields, RosterError> {
    Ok(parse(&read(path)?))
}

fn parse(text: &str) -> Fields {
    let mut hosts = Fields::new();
    for line in text.lines().map(str::trim) {
        // Lines of certificate authorities and revoked keys are skipped.
        if line.is_empty() || line.starts_with(['#', '@', '|']) {
            continue;
        }
        let names = line.split_whitespace().next().unwrap_or_default();
        let Some(name) = names.split(',').next().filter(|name| !name.contains(['*', '?', '!'])) else { continue };
        let (name, fields) = fields(name);
        hosts.entry(name).or_insert(fields);
    }
    hosts
}

/// Returns the name and the fields of `name` or `[name]:port`.
fn fields(name: &str) -> (String, Map) {
    match name.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        Some((name, port)) => (name.to_owned(), map! {"host" => name, "port" => port}),
        None => (name.to_owned(), map! {"host" => name}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ports_are_read() {
        let text = "# comment\nweb1,10.0.0.1 ssh-ed25519 AAAA\n[web2]:2222 ssh-rsa AAAA\n|1|abc=|def= ssh-rsa AAAA\n\
                    *.example.com ssh-rsa AAAA\n@cert-authority *.x ssh-rsa AAAA\nweb1 ecdsa AAAA\n";
        let hosts = parse(text);
        let lines: Vec<String> = hosts
            .iter()
            .map(|(id, fields)| format!("{id} {:?}", fields.get("port").map(ToString::to_string)))
            .collect();
        assert_eq!(lines, ["web1 None", "web2 Some(\"2222\")"]);
    }
}
