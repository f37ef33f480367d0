//! `ext_pillar` `git`: pillar files in branches of repositories, with top files of their own.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use brine_config::{ANY_ENVIRONMENT, Roots, opts};
use brine_fileserver::{GitError, RemoteOptions, Repository, Tree, Unreachable, named_with_options};
use brine_value::{FromValue, Map, Value};
use parking_lot::Mutex;

use super::PillarSource;
use super::external::Call;

/// The time of each repository's last fetch. Locked during fetch and checkout.
#[derive(Debug, Default)]
pub(super) struct Fetched(Mutex<HashMap<PathBuf, Instant>>);

/// One remote, resolved for one minion.
struct Remote {
    repository: Repository,
    branch: String,
    fallback: Option<String>,
    environment: String,
    root: String,
    mountpoint: String,
    kinds: Vec<String>,
    interval: Duration,
}

/// Returns the pillar of all remotes for the minion, later remotes over earlier ones.
pub(super) fn pillar(call: &Call<'_>) -> Result<Map, String> {
    let keyword =
        call.args.keyword.iter().map(|(name, own)| Value::Map(brine_value::map! {name.clone() => own.clone()}));
    let items = call.args.positional.iter().cloned().chain(keyword);
    let remotes = items.map(|item| Remote::read(&item, call)).collect::<Result<Vec<_>, _>>();
    let remotes = remotes.map_err(|error| error.to_string())?;
    let mut directories = Vec::new();
    for remote in &remotes {
        directories.push((remote.environment.as_str(), remote.directory(&call.source.fetched.0)?));
    }
    let includes = opts::modules::git_pillar_includes(&call.source.opts);
    let (mut all, mut errors) = (Map::new(), Vec::new());
    for (number, (environment, directory)) in directories.iter().enumerate() {
        if call.request.pillarenv.is_some_and(|only| only != *environment) {
            continue;
        }
        // Includes may be in other repositories.
        let others =
            directories.iter().enumerate().filter(|(other, (of, _))| includes && *other != number && of == environment);
        let mut paths = vec![directory.clone()];
        paths.extend(others.map(|(_, (_, directory))| directory.clone()));
        let source = PillarSource { roots: Roots::from([((*environment).to_owned(), paths)]), ..call.source.clone() };
        let mut request = call.request.clone();
        request.saltenv = Some(environment);
        let (data, more) = source.of_files(&request);
        source.merging.merge(&mut all, data);
        errors.extend(more);
    }
    if !errors.is_empty() {
        all.insert("_errors".into(), errors.into());
    }
    Ok(all)
}

/// Fetches the repositories of all entries `git`, or only those of a branch, and of a URL or name. Returns whether each
/// has changed; a failure is logged, and counts as unchanged.
///
/// # Errors
/// A remote is malformed.
pub fn update(opts: &Map, branch: Option<&str>, repo: Option<&str>) -> Result<Map, GitError> {
    let kinds = ["branch", "tag"].map(str::to_owned);
    let mut updated = Map::new();
    for item in items(opts) {
        let Configured { written, branch: of_branch, url, options, repository, .. } = Configured::read(&item, opts)?;
        let is_named = |repo: &str| repo == url || options.text("name").as_deref() == Some(repo);
        if branch.is_some_and(|branch| branch != of_branch) || repo.is_some_and(|repo| !is_named(repo)) {
            continue;
        }
        let before = repository.references(&kinds).unwrap_or_default();
        let changed = repository.fetch().and_then(|()| Ok(repository.references(&kinds)? != before));
        let changed = changed.unwrap_or_else(|error| {
            tracing::error!(%error, "fetching a git_pillar remote failed");
            false
        });
        updated.insert(written.as_str().into(), changed.into());
    }
    Ok(updated)
}

/// Tries to reach the repositories of all entries `git`, and returns those that cannot be used.
///
/// # Errors
/// A remote is malformed.
pub fn unreachable(opts: &Map) -> Result<Vec<Unreachable>, GitError> {
    let repositories = items(opts).into_iter().map(|item| Ok(Configured::read(&item, opts)?.repository));
    let repositories = repositories.collect::<Result<Vec<_>, GitError>>()?;
    Ok(brine_fileserver::unreachable(&repositories))
}

/// Returns the remotes of all entries `git`, as written.
fn items(opts: &Map) -> Vec<Value> {
    let entries = opts::shared::ext_pillar(opts);
    let remotes = entries.as_list().unwrap_or_default().iter().filter_map(|entry| entry.get("git"));
    let remotes = remotes.flat_map(|remotes| match remotes {
        Value::List(remotes) => remotes.clone(),
        one => vec![one.clone()],
    });
    remotes.collect()
}

/// One remote as it is written: `BRANCH URL` or `URL`, with options.
struct Configured<'o> {
    written: String,
    branch: String,
    /// The branch that is the environment `base`.
    base: String,
    url: String,
    options: RemoteOptions<'o>,
    repository: Repository,
}

impl<'o> Configured<'o> {
    fn read(item: &Value, opts: &'o Map) -> Result<Self, GitError> {
        let invalid = GitError::Options;
        let (written, own) =
            named_with_options(item).ok_or_else(|| invalid("an entry of ext_pillar has no URL".to_owned()))?;
        let options = RemoteOptions { own, all: opts, prefix: "git_pillar_" };
        let base = options.text("base").unwrap_or_else(|| "master".into());
        let (branch, url) = match written.split_whitespace().collect::<Vec<_>>()[..] {
            [url] => (options.text("branch").unwrap_or_else(|| base.clone()), url.to_owned()),
            [branch, url] => (branch.to_owned(), url.to_owned()),
            _ => return Err(invalid(format!("'{written}' is not a branch and a URL"))),
        };
        let cache = opts::master::cachedir(opts).join("git_pillar");
        let repository = Repository::new(&url, &options, &cache)?;
        Ok(Configured { written, branch, base, url, options, repository })
    }
}

impl Remote {
    fn read(item: &Value, call: &Call<'_>) -> Result<Self, GitError> {
        let Configured { branch, base, options, repository, .. } = Configured::read(item, &call.source.opts)?;
        let requested = call.request.pillarenv.or(call.request.saltenv);
        let everywhere = options.own.get("all_saltenvs").filter(|_| branch == ANY_ENVIRONMENT).map(ToString::to_string);
        let (branch, environment) = match (everywhere, requested) {
            (Some(reference), _) => (reference, requested.unwrap_or("base").to_owned()),
            _ if branch == base => (branch, "base".to_owned()),
            _ if branch != ANY_ENVIRONMENT => (branch.clone(), branch),
            (None, None | Some("base")) => (base, "base".to_owned()),
            (None, Some(requested)) => (requested.to_owned(), requested.to_owned()),
        };
        let interval = options.get("update_interval").and_then(|seconds| u64::from_value(&seconds)).unwrap_or(60);
        Ok(Remote {
            repository,
            branch,
            fallback: options.text("fallback"),
            environment: options.text("env").unwrap_or(environment),
            root: options.text("root").unwrap_or_default(),
            mountpoint: options.text("mountpoint").unwrap_or_default(),
            kinds: options.kinds(),
            interval: Duration::from_secs(interval),
        })
    }

    /// Returns the directory with the files of the branch. If the remote is unreachable, the last checkout is used.
    fn directory(&self, fetched: &Mutex<HashMap<PathBuf, Instant>>) -> Result<PathBuf, String> {
        let report = |error: GitError| error.to_string();
        let mut fetched = fetched.lock();
        let place = self.repository.place();
        if fetched.get(place).is_none_or(|when| when.elapsed() >= self.interval) {
            match self.repository.fetch() {
                Ok(()) => _ = fetched.insert(place.to_owned(), Instant::now()),
                Err(error) if self.repository.references(&self.kinds).is_ok_and(|references| references.is_empty()) => {
                    return Err(report(error));
                }
                Err(error) => {
                    tracing::error!(%error, "fetching a git_pillar remote failed: its last checkout is used");
                }
            }
        }
        let references = self.repository.references(&self.kinds).map_err(report)?;
        let is_commit = |name: &str| {
            name.len() == 40
                && name.bytes().all(|byte| byte.is_ascii_hexdigit())
                && self.kinds.iter().any(|kind| kind == "sha")
        };
        let find = |name: &String| references.get(name).cloned().or_else(|| is_commit(name).then(|| name.clone()));
        let commit = find(&self.branch).or_else(|| self.fallback.as_ref().and_then(find));
        let commit =
            commit.ok_or_else(|| format!("{} has no branch or tag '{}'", self.repository.describe(), self.branch))?;
        self.repository.unpacked(&Tree::new(&commit, &self.root, &self.mountpoint)).map_err(report)
    }
}
