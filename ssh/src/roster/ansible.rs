//! The roster `ansible`: an Ansible inventory in any of its formats, read by Ansible's own program `ansible-inventory`.

use std::path::Path;
use std::time::Duration;

use brine_host::process::Children;
use brine_host::programs::{Programs, program};
use brine_value::{Map, Value, json, map};
use tokio_util::sync::CancellationToken;

use super::{Fields, RosterError};

/// The name of Ansible's program.
const INVENTORY: &str = "ansible-inventory";
/// The timeout of the program: inventories may be programs that query a cloud.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The maximum size of its output, in bytes.
const MAX_LIST: usize = 256 << 20;

/// The inventory variables, and the roster fields that they map to.
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
pub(super) fn hosts(programs: &dyn Programs, path: &Path) -> Result<Fields, RosterError> {
    let failed = |reason: &str| RosterError::Program(format!("{INVENTORY} failed for {}: {reason}", path.display()));
    let words = [INVENTORY, "-i", &path.to_string_lossy(), "--list"].map(str::to_owned);
    let mut command = program(&words, &[]);
    (command.timeout, command.output_limit) = (Some(TIMEOUT), Some(MAX_LIST));
    let output = programs.run(&command, &Children::default(), &CancellationToken::new()).map_err(|error| {
        RosterError::Program(format!("the roster 'ansible' needs the program {INVENTORY}: {error}"))
    })?;
    if output.timed_out {
        return Err(failed(&format!("it has not ended within {} seconds", TIMEOUT.as_secs())));
    }
    if output.retcode != 0 {
        return Err(failed(output.stderr.trim()));
    }
    match json::from_json(&output.stdout).ok().as_ref().and_then(Value::as_map) {
        Some(all) => Ok(of_inventory(all)),
        None => Err(failed(&format!("its output is not an inventory, or exceeds {} MB", MAX_LIST >> 20))),
    }
}

fn of_inventory(all: &Map) -> Fields {
    let variables = all.get("_meta").and_then(|meta| meta.get("hostvars")).and_then(Value::as_map);
    let groups = all.iter().filter(|(name, _)| name.as_str() != Some("_meta"));
    let named = groups.filter_map(|(_, group)| group.get("hosts").and_then(Value::as_list)).flatten();
    let mut fields_by_id = Fields::new();
    for id in named.map(ToString::to_string) {
        let own = variables.and_then(|variables| variables.get(id.as_str())).and_then(Value::as_map);
        let mut fields = map! {"host" => id.as_str()};
        for (variable, field) in FIELDS {
            fields.extend(own.and_then(|own| own.get(*variable)).map(|value| ((*field).into(), value.clone())));
        }
        fields_by_id.insert(id, fields);
    }
    fields_by_id
}

#[cfg(test)]
mod tests {
    use brine_testing::Scripted;

    use super::*;

    #[test]
    fn variables_of_an_inventory_become_fields() {
        let programs = Scripted::new(
            r#"$ ansible-inventory -i hosts --list
             | {"_meta": {"hostvars": {"web1": {"ansible_host": "10.0.0.1", "ansible_port": 2222, "x": 1}}},
             | "all": {"children": ["web"]}, "web": {"hosts": ["web1", "web2"]}}"#,
        );
        let fields = hosts(&*programs, Path::new("hosts")).unwrap();
        assert_eq!(fields["web1"], map! {"host" => "10.0.0.1", "port" => 2222});
        assert_eq!(fields["web2"], map! {"host" => "web2"});
    }

    #[test]
    fn an_inventory_that_cannot_be_read_is_an_error() {
        for (transcript, message) in [
            (
                "$ ansible-inventory -i hosts --list
                 ! ERROR! it cannot be parsed
                 = 1",
                "ansible-inventory failed for hosts: ERROR! it cannot be parsed",
            ),
            (
                "$ ansible-inventory -i hosts --list
                 | {\"_meta\": {",
                "ansible-inventory failed for hosts: its output is not an inventory, or exceeds 256 MB",
            ),
        ] {
            let error = hosts(&*Scripted::new(transcript), Path::new("hosts")).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
