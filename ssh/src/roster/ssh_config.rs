//! The roster `sshconfig`: the hosts in a configuration file of `ssh` that are listed by name.
//!
//! Only the names are read, because `ssh` itself applies the options of a host.

use std::path::Path;

use brine_value::map;

use super::{Fields, RosterError, read};

/// Returns the hosts of `Host` lines, without patterns.
pub(super) fn hosts(path: &Path) -> Result<Fields, RosterError> {
    let text = read(path)?;
    let mut hosts = Fields::new();
    for line in text.lines() {
        let mut words = line.split(|c: char| c.is_whitespace() || c == '=').filter(|word| !word.is_empty());
        if !words.next().is_some_and(|word| word.eq_ignore_ascii_case("host")) {
            continue;
        }
        for name in words.map(|word| word.trim_matches('"')).filter(|name| !name.contains(['*', '?', '!', '#'])) {
            hosts.insert(name.to_owned(), map! {"host" => name, "config_file" => path.display().to_string()});
        }
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_patterns_are_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        std::fs::write(&path, "# a\nHost web1 web2\n  HostName 10.0.0.1\nHost *\n  User me\nhost=\"db1\"\nMatch all\n")
            .unwrap();
        assert_eq!(hosts(&path).unwrap().keys().collect::<Vec<_>>(), ["web1", "web2", "db1"]);
    }
}
