use std::os::unix::fs::PermissionsExt;

use brine_value::{Map, map};

use super::*;

fn access(url: &str, options: &Map) -> Result<(Access, String), GitError> {
    Access::of(url, &RemoteOptions { own: Map::new(), all: options, prefix: "gitfs_" })
}

#[test]
fn passwords_are_sent_unencrypted_only_if_that_is_permitted() {
    let login = |more: Map| {
        let mut options = map! {"gitfs_user" => "a@b", "gitfs_password" => "secret"};
        options.extend(more);
        options
    };
    for (url, options, expected) in [
        ("https://h/x.git", login(map! {}), Some("https://a%40b@h/x.git")),
        ("https://b:c@h/x@y.git", login(map! {}), Some("https://a%40b@h/x@y.git")),
        ("http://h/x.git", login(map! {}), None),
        ("http://h/x.git", login(map! {"gitfs_insecure_auth" => true}), Some("http://a%40b@h/x.git")),
        ("http://h/x.git", map! {}, Some("http://h/x.git")),
        ("ssh://git@h/x.git", login(map! {}), Some("ssh://git@h/x.git")),
        ("/srv/x.git", login(map! {}), Some("/srv/x.git")),
    ] {
        assert_eq!(access(url, &options).ok().map(|(_, url)| url).as_deref(), expected, "{url} {options:?}");
    }
}

#[test]
fn secrets_answer_the_prompts_of_their_own_remote_alone() {
    let directory = tempfile::tempdir().unwrap();
    let options = map! {
        "gitfs_user" => "me", "gitfs_password" => "a 'b' %s", "gitfs_privkey" => "/k", "gitfs_passphrase" => "$(id)",
    };
    let (access, _) = access("https://git.example:8443/x.git", &options).unwrap();
    access.prepare(directory.path()).unwrap();
    let program = directory.path().join("askpass");
    assert_eq!(program.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let mut git = Command::new("git");
    access.apply(&mut git, directory.path());
    assert!(git.get_args().all(|word| !word.to_string_lossy().contains("%s")));
    let environment: Vec<_> = git.get_envs().filter_map(|(name, value)| Some((name, value?))).collect();
    for (prompt, expected) in [
        ("Password for 'https://me@git.example:8443': ", "a 'b' %s\n"),
        ("Password for 'https://me@evil.example': ", ""),
        ("Password for 'http://me@git.example:8443': ", ""),
        ("Username for 'https://git.example:8443': ", ""),
        ("Enter passphrase for key '/k': ", "$(id)\n"),
        ("me@git.example's password: ", ""),
        ("Are you sure you want to continue connecting (yes/no/[fingerprint])? ", ""),
    ] {
        let mut asked = Command::new(&program);
        asked.arg(prompt).envs(environment.iter().copied());
        // Another test that starts a program at this moment holds the new file open until its exec.
        let answer = loop {
            match asked.output() {
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                answer => break answer.unwrap(),
            }
        };
        assert_eq!(String::from_utf8_lossy(&answer.stdout), expected, "{prompt}");
    }
}

#[test]
fn ssh_uses_the_configured_key() {
    for (options, expected) in [
        (map! {"gitfs_privkey" => "/a b"}, "ssh -oBatchMode=yes -i '/a b'"),
        (map! {"gitfs_privkey" => "/k", "gitfs_pubkey" => "/k.pub"}, "ssh -oBatchMode=yes -i /k"),
        (map! {"gitfs_pubkey" => "/k.pub"}, "ssh -oBatchMode=yes -oIdentitiesOnly=yes -i /k.pub"),
        (map! {"gitfs_privkey" => "/k", "gitfs_passphrase" => "p"}, "ssh -oPreferredAuthentications=publickey -i /k"),
    ] {
        let mut git = Command::new("git");
        access("git@h:x", &options).unwrap().0.apply(&mut git, Path::new("/d"));
        let set = git.get_envs().find(|(name, _)| *name == "GIT_SSH_COMMAND").and_then(|(_, value)| value);
        assert_eq!(set.unwrap().to_str(), Some(expected), "{options:?}");
    }
}
