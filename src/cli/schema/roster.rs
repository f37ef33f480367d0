//! The schema of a roster: hosts by id.

use brine_value::{Map, Value, map};

use super::{any_of, typed};

/// Returns the schema of a roster. A string is the address of a host alone.
pub(super) fn schema() -> Map {
    let field = |name: &str| {
        let (schema, about) = of_field(name);
        let mut described = map! {"description" => about};
        described.extend(schema);
        (Value::from(name), Value::from(described))
    };
    let fields: Map = brine_ssh::roster::fields().map(field).collect();
    let host = map! {
        "type" => "object",
        "properties" => fields,
        "patternProperties" => map! {"^_" => Map::new()},
        "additionalProperties" => false,
    };
    map! {
        "type" => vec![Value::from("object"), "null".into()],
        "additionalProperties" => any_of([typed(&["string", "null"]), host]),
    }
}

/// Returns the schema and the description of a field.
fn of_field(name: &str) -> (Map, &'static str) {
    let text = || typed(&["string", "number", "null"]);
    let flag = || typed(&["boolean", "string", "integer", "null"]);
    let list = || typed(&["array", "string", "null"]);
    match name {
        "host" => (text(), "The name or address."),
        "user" => (text(), "The login user."),
        "passwd" => (text(), "The login password."),
        "port" => (
            any_of([
                map! {"type" => "integer", "minimum" => 1, "maximum" => 65_535},
                map! {"type" => "string", "pattern" => "^[0-9]+$"},
                typed(&["null"]),
            ]),
            "The TCP port.",
        ),
        "sudo" => (flag(), "Whether functions run as root by sudo."),
        "sudo_user" => (text(), "The user that functions run as by sudo."),
        "priv" => (text(), "The private key, or agent-forwarding."),
        "priv_passwd" => (text(), "The passphrase of the private key."),
        "timeout" => (typed(&["integer", "string", "null"]), "The timeout of connecting, in seconds."),
        "minion_opts" => (typed(&["object", "null"]), "Options of the minion that runs the functions."),
        "grains" => (typed(&["object", "null"]), "Additional grains, which override those of the host."),
        "thin_dir" => (text(), "The directory of the program on the host."),
        "cmd_umask" => (text(), "The umask."),
        "ssh_options" => (list(), "Options of ssh, each without -o."),
        "set_path" => (text(), "PATH on the host."),
        "identities_only" => (flag(), "Whether only the given key is tried."),
        "config_file" => (text(), "The configuration file of ssh that replaces the user's own."),
        "mine_functions" => (typed(&["array", "object", "null"]), "Functions that other hosts may call by mine.get."),
        "tty" => (flag(), "Whether ssh allocates a terminal."),
        "ssh_pre_hook" => (text(), "A shell command that runs on the host before each call."),
        "ssh_pre_flight" => (text(), "A local script that runs on the host before the first call."),
        "ssh_pre_flight_args" => (list(), "The arguments of the script."),
        _ => (Map::new(), "Without effect in Brine."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_with_an_effect_is_described() {
        let unused: Vec<&str> =
            brine_ssh::roster::fields().filter(|name| of_field(name).1 == "Without effect in Brine.").collect();
        assert_eq!(unused, ["shim_dir", "winrm", "hashed"]);
    }
}
