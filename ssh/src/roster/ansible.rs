//! The roster `ansible`: an inventory of Ansible, read by its own program `ansible-inventory`, which knows all forms.

use std::path::Path;
use std::process::{Command, Stdio};

use brine_value::{Map, Value, json, map};

use super::{Fields, RosterError};

/// The variables of an inventory, and the fields that they become.
const FIELDS: &[(&str, &str)] = &[
    ("ansible_host", "host"),
    ("ansible_ssh_host", "host"),
    ("ansible_port", "port"),
    ("ansible_ssh_port", "port"),
    ("ansible_user", "user"),
    ("ansible_ssh_user", "user"),
    ("ansible_ssh_pass", "passwd"),
    ("ansible_password", "passwd"),
    ("ansible_sudo_pass", "passwd"),
    ("ansible_become", "sudo"),
    ("ansible_ssh_private_key_file", "priv"),
];

/// Returns the fields of all hosts of an inventory.
pub(super) fn hosts(path: &Path) -> Result<Fields, RosterError> {
    let mut command = Command::new("ansible-inventory");
    command.arg("-i").arg(path).arg("--list").stdin(Stdio::null());
    let output = command.output().map_err(|error| {
        RosterError::Program(format!("the roster 'ansible' needs the program ansible-inventory: {error}"))
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let read = json::from_json(&text).ok().and_then(|value| value.as_map().cloned());
    let Some(all) = read.filter(|_| output.status.success()) else {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(RosterError::Program(format!("ansible-inventory failed for {}: {reason}", path.display())));
    };
    Ok(of_inventory(&all))
}

fn of_inventory(all: &Map) -> Fields {
    let variables = all.get("_meta").and_then(|meta| meta.get("hostvars")).and_then(Value::as_map);
    let groups = all.iter().filter(|(name, _)| name.as_str() != Some("_meta"));
    let named = groups.filter_map(|(_, group)| group.get("hosts").and_then(Value::as_list)).flatten();
    let mut found = Fields::new();
    for id in named.map(ToString::to_string) {
        let own = variables.and_then(|variables| variables.get(id.as_str())).and_then(Value::as_map);
        let mut fields = map! {"host" => id.as_str()};
        for (variable, field) in FIELDS {
            fields.extend(own.and_then(|own| own.get(*variable)).map(|value| ((*field).into(), value.clone())));
        }
        found.insert(id, fields);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_an_inventory_become_fields() {
        let text = r#"{"_meta": {"hostvars": {"web1": {"ansible_host": "10.0.0.1", "ansible_port": 2222, "x": 1}}},
            "all": {"children": ["web"]}, "web": {"hosts": ["web1", "web2"]}}"#;
        let all = json::from_json(text).unwrap();
        let found = of_inventory(all.as_map().unwrap());
        assert_eq!(found["web1"], map! {"host" => "10.0.0.1", "port" => 2222});
        assert_eq!(found["web2"], map! {"host" => "web2"});
    }
}
