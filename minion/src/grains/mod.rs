//! Facts about this host. `os.rs` tells the system, `network.rs` addresses, `hardware.rs` processors and
//! memory. Everything is read from files and the kernel: no program is run, no name server asked.

mod hardware;
mod network;
mod os;

use brine_core::config::MinionConfig;
use brine_core::sls::yaml;
use brine_core::{Map, Value, files, list, map};

/// The release of Salt whose behaviour formulas can count on.
const SALT_VERSION: (&str, [i64; 2]) = ("3008.3", [3008, 3]);

/// All grains of this host: what is found out, below what is set by hand in `grains` files and in the
/// configuration.
pub fn collect(config: &MinionConfig, id: &str) -> Map {
    let mut grains = map! {"id" => id};
    grains.extend(os::grains());
    grains.extend(network::grains());
    grains.extend(hardware::grains());
    grains.extend(process());
    grains.extend(map! {
        "master" => config.master.first().cloned().unwrap_or_default(),
        "saltversion" => SALT_VERSION.0,
        "saltversioninfo" => list![SALT_VERSION.1[0], SALT_VERSION.1[1]],
        "brineversion" => brine_core::VERSION,
        "server_id" => server_id(id),
    });
    grains.extend(by_hand(config));
    grains.extend(config.grains.clone());
    grains
}

/// What the process itself is.
fn process() -> Map {
    let (uid, gid) = (nix::unistd::getuid(), nix::unistd::getgid());
    let user = nix::unistd::User::from_uid(uid).ok().flatten().map(|user| user.name);
    let group = nix::unistd::Group::from_gid(gid).ok().flatten().map(|group| group.name);
    let path = std::env::var("PATH").unwrap_or_default();
    map! {
        "uid" => uid.as_raw(),
        "gid" => gid.as_raw(),
        "username" => user,
        "groupname" => group,
        "pid" => std::process::id(),
        "systempath" => path.split(':').collect::<Value>(),
        "path" => path,
        "shell" => std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".into()),
        "cwd" => std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default(),
        "ps" => "ps -efHww",
    }
}

/// A number that stays the same for an id, as Salt makes it: from its SHA-256.
fn server_id(id: &str) -> i64 {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(id.as_bytes());
    // The digest as one large number, modulo 2^31: its last four bytes without the highest bit.
    let last = digest.iter().skip(28).fold(0i64, |number, byte| number << 8 | i64::from(*byte));
    last & 0x7fff_ffff
}

/// The grains file in the configuration folder.
fn by_hand(config: &MinionConfig) -> Map {
    let path = config.config_dir.join("grains");
    let read = files::read_if_exists(&path).map_err(|error| error.to_string());
    let loaded = read
        .and_then(|text| yaml::load(&text.unwrap_or_default()).map_err(|error| format!("{}: {error}", path.display())));
    match loaded {
        Ok(Value::Map(grains)) => grains,
        Ok(_) => Map::new(),
        Err(error) => {
            tracing::error!(error, "the grains file is left out");
            Map::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grains_say_what_formulas_ask_for() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("grains"), "role: web\nos: Mine\n").unwrap();
        let config = MinionConfig {
            config_dir: folder.path().to_owned(),
            grains: map! {"site" => "here"},
            ..MinionConfig::default()
        };
        let grains = collect(&config, "web1");
        for name in [
            "os_family",
            "osfinger",
            "oscodename",
            "kernel",
            "cpuarch",
            "num_cpus",
            "mem_total",
            "ip4_interfaces",
            "ipv4",
            "fqdn",
            "host",
            "init",
        ] {
            assert!(grains.get(name).is_some_and(Value::is_truthy), "{name}");
        }
        assert_eq!(grains.get("os"), Some(&"Mine".into()));
        assert_eq!((grains.get("role"), grains.get("site")), (Some(&"web".into()), Some(&"here".into())));
    }
}
