//! Runs git in a directory, as a user, with SSH keys, and parses its output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_function::CallError;
use brine_host::process::{Output, Program};
use brine_host::programs::argument;
use brine_host::web::redacted;
use brine_system::files;
use brine_text::shell::quote;
use brine_value::{FromValue, Map, Value, percent_encoded};
use indexmap::IndexMap;
use nix::unistd::User;

use brine_modules_files::cmd::Scratch;

/// A failure of git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitError {
    /// The command, without passwords; `None` if it was not run.
    pub command: Option<String>,
    /// The output, without passwords.
    pub message: String,
}

impl std::fmt::Display for GitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.command {
            Some(command) if self.message.is_empty() => write!(f, "Command '{command}' failed"),
            Some(command) => write!(f, "Command '{command}' failed: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl From<GitError> for CallError {
    fn from(error: GitError) -> Self {
        CallError::Execution(error.to_string())
    }
}

impl GitError {
    /// Returns an error that occurred before git was run.
    pub fn new(message: impl Into<String>) -> Self {
        GitError { command: None, message: message.into() }
    }

    /// Returns the message for states: git's output, or the command if there is none.
    pub fn bare(&self) -> String {
        if self.message.is_empty() { self.to_string() } else { self.message.clone() }
    }
}

/// Result of a fetch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FetchResult {
    new: IndexMap<&'static str, Vec<String>>,
    updated: IndexMap<String, (String, String)>,
}

/// URLs of a remote, by `fetch` and `push`.
pub type Remote = BTreeMap<String, String>;

/// Runs git in a directory, with a user and SSH keys.
pub struct Git<'c> {
    context: &'c Context,
    /// Working directory.
    pub cwd: Option<PathBuf>,
    user: Option<String>,
    identity: Vec<String>,
    ignore_retcode: bool,
    saltenv: String,
}

impl<'c> Git<'c> {
    /// Creates a handle for git in a directory, with the arguments that all functions share: `user`, `identity`,
    /// `ignore_retcode` and `saltenv`. A relative directory is below the user's home directory.
    pub fn new(context: &'c Context, cwd: Option<&str>, kwargs: &Map) -> Self {
        let text = |key: &str| kwargs.get(key).filter(|value| value.is_truthy()).map(ToString::to_string);
        let user = text("user");
        let home = match &user {
            Some(name) => User::from_name(name),
            None => User::from_uid(nix::unistd::geteuid()),
        };
        let home = home.ok().flatten().map_or_else(|| PathBuf::from("/"), |user| user.dir);
        Git {
            context,
            cwd: cwd.map(|cwd| home.join(cwd)),
            user,
            identity: kwargs.get("identity").and_then(Vec::from_value).unwrap_or_default(),
            ignore_retcode: kwargs.get("ignore_retcode").is_some_and(Value::is_truthy),
            saltenv: text("saltenv").unwrap_or_else(|| "base".into()),
        }
    }

    /// Returns a copy that does not log failures.
    #[must_use]
    pub fn quietly(&self) -> Git<'c> {
        Git {
            context: self.context,
            cwd: self.cwd.clone(),
            user: self.user.clone(),
            identity: self.identity.clone(),
            ignore_retcode: true,
            saltenv: self.saltenv.clone(),
        }
    }

    /// Runs git with these arguments, and returns its output whether it succeeds or not.
    pub fn output(&self, words: &[String], merge: bool) -> Result<Output, GitError> {
        self.run(words, merge).map(|(_, output)| output)
    }

    fn run(&self, words: &[String], merge: bool) -> Result<(String, Output), GitError> {
        let all = || std::iter::once("git").chain(words.iter().map(String::as_str));
        let report = redacted(&all().collect::<Vec<_>>().join(" "));
        let mut env = Vec::new();
        let keys = self.keys()?;
        if !keys.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| format!("-i {}", quote(key.path()))).collect();
            let options = "-oStrictHostKeyChecking=no -oPasswordAuthentication=no -oKbdInteractiveAuthentication=no";
            env.push(("GIT_SSH_COMMAND".to_owned(), format!("ssh {options} {}", keys.join(" "))));
        }
        let program = Program {
            command: all().map(quote).collect::<Vec<_>>().join(" "),
            cwd: self.cwd.clone(),
            env,
            runas: self.user.clone(),
            merge,
            ..Program::default()
        };
        let output = self.context.run_program(&program).map_err(|error| GitError::new(error.to_string()))?;
        if output.retcode != 0 && !self.ignore_retcode {
            self.context.set_retcode(output.retcode);
        }
        Ok((report, output))
    }

    /// Returns the SSH keys; those under `salt://` are copied to files that only the user can read.
    fn keys(&self) -> Result<Vec<Key>, GitError> {
        let mut keys = Vec::new();
        for name in &self.identity {
            if let Some(path) = name.strip_prefix("salt://") {
                let key_file = self
                    .context
                    .minion
                    .files
                    .read(path, &self.saltenv)
                    .map_err(|error| GitError::new(error.to_string()))?;
                let missing = || GitError::new(format!("The following identity file(s) were not found: {name}"));
                let scratch = Scratch::new(&key_file.ok_or_else(missing)?, self.user.as_deref());
                keys.push(Key::Copied(scratch.map_err(|error| GitError::new(error.to_string()))?));
            } else if Path::new(name).is_file() {
                keys.push(Key::Existing(name.clone()));
            }
        }
        if keys.is_empty() && !self.identity.is_empty() {
            return Err(GitError::new(format!(
                "Unable to authenticate using identity file:\n\nThe following identity file(s) were not found: {}",
                self.identity.join(", ")
            )));
        }
        Ok(keys)
    }

    fn checked(&self, words: &[String], merge: bool) -> Result<String, GitError> {
        let (command, output) = self.run(words, merge)?;
        if output.retcode == 0 {
            return Ok(output.stdout);
        }
        let report = if merge { &output.stdout } else { &output.stderr };
        Err(GitError { command: Some(command), message: redacted(report) })
    }

    /// Runs git and returns its standard output.
    pub fn stdout(&self, words: &[String]) -> Result<String, GitError> {
        self.checked(words, false)
    }

    /// Runs git and returns its standard output and error.
    pub fn both(&self, words: &[String]) -> Result<String, GitError> {
        self.checked(words, true)
    }

    /// Runs git as [`Git::stdout`], with static arguments.
    pub fn plain(&self, words: &[&str]) -> Result<String, GitError> {
        self.stdout(&strings(words))
    }

    /// Returns the commit that a revision resolves to.
    pub fn rev_parse(&self, rev: &str, options: &[&str]) -> Result<String, GitError> {
        let mut words = vec!["rev-parse"];
        words.extend(options);
        words.push(rev);
        self.plain(&words)
    }

    /// Returns the current branch, `HEAD` if detached.
    pub fn current_branch(&self) -> Result<String, GitError> {
        self.plain(&["rev-parse", "--abbrev-ref", "HEAD"])
    }

    /// Returns the names of references of one type: `heads`, `remotes`, `tags`.
    pub fn names(&self, kind: &str) -> Result<Vec<String>, GitError> {
        let output = self.plain(&["for-each-ref", "--format", "%(refname:short)", &format!("refs/{kind}/")])?;
        Ok(output.lines().map(str::to_owned).collect())
    }

    /// Returns the URLs of the remotes.
    pub fn remotes(&self) -> Result<IndexMap<String, Remote>, GitError> {
        let mut remotes: IndexMap<String, Remote> = IndexMap::new();
        for line in self.plain(&["remote", "--verbose"])?.lines() {
            let Some((name, rest)) = line.split_once(char::is_whitespace) else { continue };
            let Some((url, action)) = rest.trim().rsplit_once(char::is_whitespace) else { continue };
            let action = action.trim_matches(['(', ')']).to_lowercase();
            if action == "fetch" || action == "push" {
                remotes.entry(name.to_owned()).or_default().insert(action, url.trim().to_owned());
            }
        }
        Ok(remotes)
    }

    /// Sets the URL of a remote.
    pub fn set_remote(&self, name: &str, url: &str) -> Result<(), GitError> {
        let (name, url) = (operand(name)?, operand(url)?);
        if self.remotes()?.contains_key(&name) {
            self.plain(&["remote", "rm", &name])?;
        }
        self.plain(&["remote", "add", &name, &url]).map(|_| ())
    }

    /// Returns references by name, as listed by `ls-remote` with these arguments.
    pub fn refs(&self, words: &[String]) -> Result<IndexMap<String, String>, GitError> {
        let mut all = strings(&["ls-remote"]);
        all.extend_from_slice(words);
        let lines = self.stdout(&all)?;
        let line = |line: &str| {
            line.split_once(char::is_whitespace).map(|(sha, name)| (name.trim().to_owned(), sha.to_owned()))
        };
        Ok(lines.lines().filter_map(line).collect())
    }

    /// Fetches from a remote, and returns the new and updated references.
    pub fn fetch(
        &self,
        remote: Option<&str>,
        force: bool,
        refs: &[String],
        options: &[String],
    ) -> Result<FetchResult, GitError> {
        let mut words = strings(&["fetch"]);
        words.extend(force.then(|| "--force".to_owned()));
        words.extend(options.iter().filter(|word| !["-f", "--force"].contains(&word.as_str())).cloned());
        for word in remote.into_iter().chain(refs.iter().map(String::as_str)) {
            words.push(operand(word)?);
        }
        Ok(FetchResult::read(&self.both(&words)?))
    }

    /// Clones a repository into a directory.
    pub fn clone_to(&self, target: &str, url: &str, options: &[String]) -> Result<(), GitError> {
        let mut words = strings(&["clone"]);
        words.extend_from_slice(options);
        words.extend(["--".to_owned(), url.to_owned(), target.to_owned()]);
        let from = Git { cwd: Some("/tmp".into()), ..self.quietly() };
        Git { ignore_retcode: self.ignore_retcode, ..from }.stdout(&words).map(|_| ())
    }

    /// Whether the directory is a linked worktree.
    pub fn is_worktree(&self) -> bool {
        if self.cwd.as_ref().is_none_or(|cwd| !cwd.is_dir()) {
            return false;
        }
        let Ok(top) = self.quietly().plain(&["rev-parse", "--show-toplevel"]) else { return false };
        let text = files::read_to_string(Path::new(&top).join(".git")).unwrap_or_default();
        text.strip_prefix("gitdir:").is_some_and(|path| path.trim_start().starts_with('/'))
    }
}

enum Key {
    Existing(String),
    Copied(Scratch),
}

impl Key {
    fn path(&self) -> &str {
        match self {
            Key::Existing(path) => path,
            Key::Copied(scratch) => scratch.path().to_str().unwrap_or_default(),
        }
    }
}

/// Checks that an argument is no option.
fn operand(word: &str) -> Result<String, GitError> {
    argument(word).map_err(|error| GitError::new(error.to_string()))
}

/// Returns the arguments as owned strings.
pub fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns a URL with a user name and a password, which only `https://` may have.
pub fn with_login(url: &str, user: Option<&str>, password: Option<&str>) -> Result<String, GitError> {
    let Some(user) = user.or(password.map(|_| "")) else { return Ok(url.to_owned()) };
    let Some(rest) = url.strip_prefix("https://") else {
        return Err(GitError::new("Basic Auth only supported for HTTPS"));
    };
    let password = password.map(|password| format!(":{}", percent_encoded(password))).unwrap_or_default();
    Ok(format!("https://{}{password}@{rest}", percent_encoded(user)))
}

impl FetchResult {
    /// Parses lines such as ` * [new branch]  x -> origin/x` and `   1234567..89abcde  x -> origin/x`.
    fn read(text: &str) -> Self {
        let mut fetched = FetchResult::default();
        for line in text.lines() {
            let line = line.trim_start_matches([' ', '\t', '*']);
            let Some((what, _)) = line.split_once("->") else { continue };
            let mut add = |kind, name: &str| fetched.new.entry(kind).or_default().push(name.trim().to_owned());
            if let Some(name) = what.strip_prefix("[new branch] ") {
                add("new branches", name);
            } else if let Some(name) = what.strip_prefix("[new tag] ") {
                add("new tags", name);
            } else if let Some(name) = what.strip_prefix("[tag update] ") {
                add("updated tags", name);
            } else if let Some((range, name)) = what.split_once(char::is_whitespace)
                && let Some((old, new)) = range.split_once("..")
                && [old, new].iter().all(|sha| !sha.is_empty() && sha.chars().all(|c| c.is_ascii_hexdigit()))
            {
                fetched.updated.insert(name.trim().to_owned(), (old.to_owned(), new.to_owned()));
            }
        }
        fetched
    }

    /// Whether the fetch returned no new or updated references.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.updated.is_empty()
    }
}

impl From<FetchResult> for Value {
    fn from(fetched: FetchResult) -> Self {
        let mut map: Map = fetched.new.into_iter().map(|(kind, names)| (kind.into(), names.into())).collect();
        if !fetched.updated.is_empty() {
            let one = |(name, (old, new)): (String, (String, String))| {
                (name.into(), brine_value::map! {"old" => old, "new" => new}.into())
            };
            map.insert("updated branches".into(), fetched.updated.into_iter().map(one).collect::<Map>().into());
        }
        map.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_fetch_is_parsed() {
        let text = "From /x\n * [new branch]      a/b -> origin/a/b\n * [new tag]   v1 -> v1\n   1234567..89abcde  main -> origin/main\n   * branch main -> FETCH_HEAD";
        let report = brine_value::json::to_json(&FetchResult::read(text).into());
        insta::assert_snapshot!(report, @r#"{"new branches": ["a/b"], "new tags": ["v1"], "updated branches": {"main": {"old": "1234567", "new": "89abcde"}}}"#);
    }

    #[test]
    fn credentials_are_part_of_the_url_and_never_reported() {
        assert_eq!(with_login("https://h/r", None, None).unwrap(), "https://h/r");
        assert_eq!(with_login("https://h/r", Some("me"), Some("a@b")).unwrap(), "https://me:a%40b@h/r");
        assert!(with_login("http://h/r", Some("me"), None).is_err());
        assert_eq!(redacted("x https://me:a%40b@h/r y ssh://git@h"), "x https://<redacted>@h/r y ssh://git@h");
    }
}
