//! Tries to reach remotes before a daemon needs them: all at the same time, each for a few seconds.

use std::thread;

use super::{GitError, Repository};

/// The number of remotes that are tried at the same time.
const AT_ONCE: usize = 32;

/// What git says of a remote that it cannot use, in lower case, and what to do then.
const ADVICE: &[(&[&str], &str)] = &[
    (&["host key verification failed"], "add the key of its host to the known_hosts of the user that runs the master"),
    (&["could not resolve"], "correct the name of its host, or its name server"),
    (
        &[
            "authentication failed",
            "could not read username",
            "could not read password",
            "permission denied",
            "access denied",
        ],
        "compare its options user, password, pubkey, privkey and passphrase with what its host expects",
    ),
    (&["certificate"], "let this host trust the authority of its certificate"),
    (
        &["not found", "does not appear to be a git repository", "does not exist", "no such file", "unable to find"],
        "correct its URL, or create the repository",
    ),
    (
        &["connection refused", "connect to", "timed out", "timeout", "longer than", "no route", "unreachable"],
        "see whether its host runs and is reachable from here",
    ),
];

/// A remote that cannot be used.
#[derive(Debug)]
pub struct Unreachable {
    /// The URL without a password.
    pub remote: String,
    /// The cause, in one line.
    pub cause: String,
    /// What to do.
    pub advice: &'static str,
}

/// Tries to reach remotes, and returns those that cannot be used.
pub fn unreachable<'a>(repositories: impl IntoIterator<Item = &'a Repository>) -> Vec<Unreachable> {
    let all: Vec<&Repository> = repositories.into_iter().collect();
    let mut failures = Vec::new();
    for some in all.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let tries: Vec<_> = some.iter().map(|one| (one, scope.spawn(|| one.probe()))).collect();
            for (one, tried) in tries {
                if let Ok(Err(error)) = tried.join() {
                    failures.push(explained(one, &error));
                }
            }
        });
    }
    failures
}

fn explained(repository: &Repository, error: &GitError) -> Unreachable {
    let cause = match error {
        GitError::Git { output, .. } => {
            // The last lines of git are advice for its own users.
            let lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
            let lines =
                lines.filter(|line| !line.starts_with("Please make sure") && !line.starts_with("and the repository"));
            lines.map(|line| line.trim_start_matches("fatal: ")).collect::<Vec<_>>().join(" | ")
        }
        GitError::Start { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    let lower = cause.to_lowercase();
    let fitting = ADVICE.iter().find(|(parts, _)| parts.iter().any(|part| lower.contains(part)));
    Unreachable {
        remote: repository.describe(),
        advice: fitting.map_or("try `git ls-remote` as the user that runs the master", |(_, advice)| advice),
        cause,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use brine_value::{Map, map};

    use super::*;
    use crate::git::RemoteOptions;

    fn repository(url: &str, own: Map) -> Repository {
        Repository::new(url, &RemoteOptions { own, all: &Map::new(), prefix: "gitfs_" }, Path::new("/nosuch")).unwrap()
    }

    #[test]
    fn each_remote_is_tried_within_a_bounded_time() {
        let directory = tempfile::tempdir().unwrap();
        let good = directory.path().join("good");
        let made = std::process::Command::new("git").args(["init", "-q", "--bare"]).arg(&good).status().unwrap();
        assert!(made.success());
        // It accepts connections and never answers.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let silent = format!(
            "{}",
            silent
                .local_addr()
                .map(|at| (at, silent))
                .map(|(at, socket)| {
                    std::mem::forget(socket);
                    at
                })
                .unwrap()
        );
        let expected = [
            (format!("file://{}", good.display()), None),
            (format!("file://{}/none", directory.path().display()), Some("correct its URL")),
            (format!("http://{closed}/x.git"), Some("see whether its host runs")),
            (format!("git://{closed}/x.git"), Some("see whether its host runs")),
            (format!("http://{silent}/x.git"), Some("see whether its host runs")),
            (format!("git://{silent}/x.git"), Some("see whether its host runs")),
            ("https://nosuch.invalid/x.git".to_owned(), Some("correct the name of its host")),
        ];
        let all: Vec<Repository> = expected.iter().map(|(url, _)| repository(url, Map::new())).collect();
        let start = Instant::now();
        let failures = unreachable(&all);
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
        for (url, expected) in &expected {
            let one = failures.iter().find(|one| one.remote == *url);
            assert_eq!(one.is_some(), expected.is_some(), "{url}: {failures:?}");
            if let (Some(one), Some(expected)) = (one, expected) {
                assert!(one.advice.contains(expected) && !one.cause.is_empty(), "{url}: {one:?}");
            }
        }
    }

    #[test]
    fn passwords_are_in_no_message() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let own = map! {"user" => "u", "password" => "xyzzy"};
        let failures = unreachable([&repository(&format!("https://{closed}/x.git"), own)]);
        assert!(!failures.is_empty() && !format!("{failures:?}").contains("xyzzy"), "{failures:?}");
    }
}
