//! dnf's repositories: `.repo` files in the directories of its configuration.

use std::path::PathBuf;

use brine_context::Context;
use brine_function::CallError;
use brine_system::files;
use brine_system::user_files;
use brine_value::{Map, Value};

use super::{Dnf, Program};
use crate::pkg::manager::{Packages, Repositories};
use crate::pkg::options::{Options, is_true};
use crate::pkg::rpm::repo_files::{RepoFile, Section, comments, describe, differs, repositories, written};
use brine_function::arguments::names;

/// Possible paths of the configuration, in the order of the search.
const CONFIG_PATHS: [&str; 4] = ["/etc/yum/yum.conf", "/etc/yum.conf", "/etc/dnf/dnf.conf", "/etc/tdnf/tdnf.conf"];
const REPO_DIRECTORIES: [&str; 2] = ["/etc/yum/repos.d", "/etc/yum.repos.d"];
/// Options with the location of a repository, of which it has one.
const LOCATION_OPTIONS: [&str; 3] = ["baseurl", "mirrorlist", "metalink"];

/// Returns the given directories, or those of the configuration.
fn directories(args: &Map) -> Result<Vec<PathBuf>, CallError> {
    let argument = args.get("basedir").filter(|argument| argument.is_truthy()).map(names);
    let directories = match argument {
        Some(directories) => directories,
        None => configured()?,
    };
    Ok(directories.into_iter().map(PathBuf::from).collect())
}

fn configured() -> Result<Vec<String>, CallError> {
    for path in CONFIG_PATHS {
        let Some(text) = files::read_if_exists(path).map_err(CallError::execution)? else { continue };
        let reposdir = text.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == "reposdir").then(|| names(&value.trim().into()))
        });
        return Ok(reposdir.unwrap_or_else(|| REPO_DIRECTORIES.map(str::to_owned).to_vec()));
    }
    Ok(REPO_DIRECTORIES.map(str::to_owned).to_vec())
}

/// Returns the name of a Copr repository, given as `copr:user/project`.
fn repo_name(repo: &str) -> String {
    match repo.strip_prefix("copr:").and_then(|rest| rest.split_once('/')) {
        Some((user, project)) => format!("copr:copr.fedorainfracloud.org:{user}:{project}"),
        None => repo.to_owned(),
    }
}

fn failed(text: impl Into<String>) -> CallError {
    CallError::Execution(text.into())
}

/// Formats a list as Python does.
fn format_list(directories: &[PathBuf]) -> String {
    Value::from(directories.iter().map(|directory| directory.display().to_string()).collect::<Vec<_>>()).to_string()
}

/// Enables a Copr repository, whose file is written by dnf.
fn enable_copr(context: &Context, copr: &str) -> Result<(), CallError> {
    let program = Program::of_host(context)?;
    let plugin = if program.is_dnf() { "dnf-plugins-core" } else { "yum-plugin-copr" };
    if !Dnf.list(context, &Options::default())?.contains_key(plugin) {
        return Err(failed(format!("{plugin} must be installed to use COPR")));
    }
    let output = program.run(context, ["copr", "enable", copr, "-y"])?;
    if output.retcode != 0 {
        let (name, retcode, stderr) = (program.name(), output.retcode, output.stderr);
        return Err(failed(format!("Unable to add COPR '{copr}'. '{name}' exited with status {retcode}: '{stderr}' ")));
    }
    Ok(())
}

/// Returns the file to which a repository is written, with its current content.
fn file_for(
    context: &Context,
    repo: &str,
    directories: &[PathBuf],
    options: &Map,
) -> Result<(PathBuf, RepoFile), CallError> {
    let name = repo_name(repo);
    let find = || repositories(directories).map_err(CallError::execution);
    let read = |path: PathBuf| {
        let file = RepoFile::read(&path).map_err(CallError::execution)?;
        Ok((path, file))
    };
    if let Some((path, _)) = find()?.shift_remove(&name) {
        return read(path);
    }
    let directory = directories.iter().find(|directory| directory.exists()).ok_or_else(|| {
        let list = format_list(directories);
        failed(format!(
            "The repo does not exist and needs to be created, but none of the following basedir directories exist: {list}"
        ))
    })?;
    if let Some(copr) = repo.strip_prefix("copr:") {
        enable_copr(context, copr)?;
        let (path, _) = find()?
            .shift_remove(&name)
            .ok_or_else(|| failed(format!("COPR '{copr}' was enabled, but its repository {name} is not there")))?;
        return read(path);
    }
    if !options.contains_key("name") {
        return Err(failed("The repo does not exist and needs to be created, but a name was not given"));
    }
    if !LOCATION_OPTIONS.iter().any(|link| options.contains_key(*link)) {
        let links = LOCATION_OPTIONS.join(", ");
        return Err(failed(format!("The repo does not exist and needs to be created, but none of {links} was given")));
    }
    let mut file = RepoFile::default();
    file.sections.entry(name.clone()).or_default();
    Ok((directory.join(format!("{name}.repo")), file))
}

impl Repositories for Dnf {
    fn all(&self, _context: &Context, args: &Map) -> Result<Map, CallError> {
        let sections = repositories(&directories(args)?).map_err(CallError::execution)?;
        let report = sections.into_iter().map(|(name, (path, section))| {
            let mut report = section.to_map();
            report.insert("file".into(), path.display().to_string().into());
            (name.into(), report.into())
        });
        Ok(report.collect())
    }

    fn one(&self, _context: &Context, repo: &str, args: &Map) -> Result<Map, CallError> {
        let mut sections = repositories(&directories(args)?).map_err(CallError::execution)?;
        Ok(sections.shift_remove(&repo_name(repo)).map(|(_, section)| section.to_map()).unwrap_or_default())
    }

    fn delete(&self, _context: &Context, repo: &str, args: &Map) -> Result<Value, CallError> {
        let (directories, repo) = (directories(args)?, repo_name(repo));
        let Some((path, _)) = repositories(&directories).map_err(CallError::execution)?.shift_remove(&repo) else {
            return Ok(format!("Error: the {repo} repo does not exist in {}", format_list(&directories)).into());
        };
        let mut file = RepoFile::read(&path).map_err(CallError::execution)?;
        file.sections.shift_remove(&repo);
        let pathname = path.display();
        if file.sections.is_empty() {
            user_files::remove_file(&path).map_err(|error| failed(format!("{pathname}: {error}")))?;
            return Ok(format!("File {pathname} containing repo {repo} has been removed").into());
        }
        file.write(&path).map_err(CallError::execution)?;
        Ok(format!("Repo {repo} has been removed from {pathname}").into())
    }

    fn modify(&self, context: &Context, repo: &str, mut args: Map) -> Result<Value, CallError> {
        let directories = directories(&args)?;
        for key in ["basedir", "saltenv", "strict_config", "refresh_db"] {
            args.shift_remove(key);
        }
        args.retain(|key, _| !key.to_string().starts_with("__"));
        if LOCATION_OPTIONS.iter().filter(|link| args.contains_key(**link)).count() > 1 {
            return Err(failed(format!("One and only one of {} can be used", LOCATION_OPTIONS.join(", "))));
        }
        // An empty option is removed; one type of location replaces the others.
        let is_empty = |value: &Value| !value.is_truthy() && !matches!(value, Value::Bool(_) | Value::Int(_));
        let mut unwanted: Vec<String> =
            args.iter().filter(|(_, value)| is_empty(value)).map(|(key, _)| key.to_string()).collect();
        args.retain(|_, value| !is_empty(value));
        if let Some(link) = LOCATION_OPTIONS.iter().find(|link| args.contains_key(**link)) {
            unwanted.extend(LOCATION_OPTIONS.iter().filter(|other| *other != link).map(|other| (*other).to_owned()));
        }
        if unwanted.iter().any(|key| key == "name") {
            return Err(failed("The repo name cannot be deleted"));
        }
        let (path, mut file) = file_for(context, repo, &directories, &args)?;
        let section = file.sections.entry(repo_name(repo)).or_default();
        for link in LOCATION_OPTIONS {
            let others: Vec<&str> = LOCATION_OPTIONS.into_iter().filter(|other| *other != link).collect();
            let is_there = |other: &&str| args.contains_key(*other) || section.options.contains_key(*other);
            if unwanted.iter().any(|key| key == link) && !others.iter().any(is_there) {
                return Err(failed(format!("Cannot delete {link} without specifying {}", others.join(" or "))));
            }
        }
        for key in &unwanted {
            section.options.shift_remove(key);
        }
        for (key, value) in &args {
            match key.to_string() {
                key if key == "comments" => section.comments = comments(value),
                key => {
                    section.options.insert(key, written(value));
                }
            }
        }
        file.write(&path).map_err(CallError::execution)?;
        // As in Salt: the options as given, without comments.
        let report = file.sections.iter().map(|(name, section)| {
            let mut report = Section { comments: Vec::new(), ..section.clone() }.to_map();
            if *name == repo_name(repo) {
                report.extend(args.clone().into_iter().filter(|(key, _)| key.as_str() != Some("comments")));
            }
            (name.into(), report.into())
        });
        Ok(brine_value::map! {path.display().to_string() => report.collect::<Map>()}.into())
    }

    fn named(&self, name: &str, args: &mut Map) -> String {
        let copr = args.shift_remove("copr").filter(Value::is_truthy).map(|copr| copr.to_string());
        describe(name, args);
        match copr {
            Some(copr) if copr.starts_with("copr:") => copr,
            Some(copr) => format!("copr:{copr}"),
            None => name.to_owned(),
        }
    }

    fn differs(&self, have: &Map, desired: &Map, _args: &Map) -> bool {
        desired.iter().any(|(key, value)| match (key.as_str(), have.get(key)) {
            // The default is enabled.
            (Some("enabled"), None) => !is_true(value),
            (Some("comments"), Some(have)) => comments(have) != comments(value),
            (_, have) => differs(key, value, have),
        })
    }
}
