//! CVEs of salt-ssh. A stand-in for `ssh` records its arguments, and runs the line for the host in a shell of this machine.

use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use brine_value::json;

use crate::support::{BRINE, System, stderr, stdout, within_limit};

/// Creates a system with the stand-in, whose only host has these fields.
fn system(fields: &str) -> System {
    let system = System::new("");
    let path = system.write(
        "bin/ssh",
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >> ROOT/arguments\nfor line; do :; done\nexec /bin/sh -c \"$line\"\n",
    );
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    system.write("etc/roster", &format!("web1: {{host: web1, thin_dir: ROOT/thin{fields}}}\n"));
    system
}

fn ssh(system: &System, words: &[&str]) -> Output {
    let path = format!("{}:{}", system.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut command = within_limit(BRINE);
    command.env("PATH", path).args(["salt-ssh", "-c", &system.etc()]).args(words).stdin(Stdio::null());
    command.output().unwrap()
}

/// Arguments of `ssh` went through a shell of the master.
#[test]
fn cve_2020_16846_arguments_of_ssh_pass_no_shell() {
    let system = system(", priv: '/key; touch ROOT/planted', user: 'a$(touch ROOT/planted)'");
    let words = ["--ssh-option", "SetEnv=A=`touch ROOT/planted`", "web1", "test.ping"];
    let output = ssh(&system, &words);
    assert!(stdout(&output).contains("True"), "{}{}", stdout(&output), stderr(&output));
    assert!(!system.path("planted").exists());
    let arguments = std::fs::read_to_string(system.path("arguments")).unwrap();
    assert!(arguments.contains("\nIdentityFile=/key; touch ") && arguments.contains("\nUser=a$(touch "), "{arguments}");
}

/// Options for the program on the host became commands.
#[test]
fn cve_2021_3148_arguments_are_data_on_the_host() {
    let system = system("");
    for text in ["'; touch planted; '", "$(touch planted)", "\"`touch planted`", "a\nb; touch planted", "--help", "-x"]
    {
        let output =
            ssh(&system, &["--out=json", "--static", "--no-parse=text", "web1", "test.echo", &format!("text={text}")]);
        let answer = json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        // As in Salt, an argument with a line break is no keyword argument.
        let expected = if text.contains('\n') { format!("text={text}") } else { text.to_owned() };
        assert_eq!(answer.get("web1").map(ToString::to_string), Some(expected));
    }
    assert!(!std::path::Path::new("planted").exists() && !system.path("planted").exists());
    let arguments = std::fs::read_to_string(system.path("arguments")).unwrap();
    assert!(!arguments.contains("planted"), "nothing of a call is in a command line: {arguments}");
}

/// A host or option of a roster that begins with a dash was an option of `ssh`, such as `ProxyCommand`.
#[test]
fn cve_2021_3197_hosts_are_no_options_of_ssh() {
    for fields in [
        ", host: '-oProxyCommand=touch ROOT/planted'",
        ", host: '-F/etc/passwd'",
        ", ssh_options: ['-oProxyCommand=touch ROOT/planted']",
        ", user: '-oProxyCommand=x'",
        ", host: \"a\\nProxyCommand x\"",
        ", host: '$(touch ROOT/planted)'",
    ] {
        let system = system(&fields.replacen(", host:", ", x: 1, host:", 1));
        let roster = std::fs::read_to_string(system.path("etc/roster")).unwrap();
        // Of two equal keys the last one applies, so the entry's own host is removed.
        system.write("etc/roster", &if fields.contains("host:") { roster.replace("host: web1, ", "") } else { roster });
        let output = ssh(&system, &["web1", "test.ping"]);
        assert_eq!(output.status.code(), Some(1), "{fields}: {}", stdout(&output));
        assert!(
            stderr(&output).contains("the roster") && stderr(&output).contains("is invalid"),
            "{}",
            stderr(&output)
        );
        assert!(!system.path("arguments").exists() && !system.path("planted").exists(), "{fields}");
    }
}

/// A script was run from a path in `/tmp` that another user could have prepared.
#[test]
fn cve_2023_34049_nothing_prepared_on_the_host_is_run() {
    let system = system("");
    std::fs::create_dir(system.path("other")).unwrap();
    std::os::unix::fs::symlink(system.path("other"), system.path("thin")).unwrap();
    let output = ssh(&system, &["web1", "test.ping"]);
    assert!(stdout(&output).contains("belongs to another user"), "{}", stdout(&output));
    assert_eq!(std::fs::read_dir(system.path("other")).unwrap().count(), 0);
    std::fs::remove_file(system.path("thin")).unwrap();
    // With a random directory, which others cannot know, and which is removed.
    let output = ssh(&system, &["--rand-thin-dir", "web1", "cmd.run", "echo $0"]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let line = std::fs::read_to_string(system.path("arguments")).unwrap();
    let directory =
        line.rsplit("d=").find_map(|rest| rest.split(';').next().filter(|path| path.starts_with("/tmp/.brine-")));
    let directory = directory.expect("no random directory");
    assert!(directory.len() == "/tmp/.brine-".len() + 16 && !std::path::Path::new(directory).exists(), "{directory}");
}
