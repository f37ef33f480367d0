//! apt's repositories: lines and sections in its files.

use std::path::Path;

use brine_context::Context;
use brine_function::CallError;
use brine_system::files;
use brine_system::user_files;
use brine_value::{FromValue, Map, Value, map};

use super::Apt;
use super::keys::{add_key, del_repo_key, has_apt_key};
use super::sources::{Source, Sources, same_uri};
use crate::pkg::manager::{Packages, Repositories};
use crate::pkg::options::{Options, is_true};
use brine_function::arguments::names;

impl Repositories for Apt {
    fn all(&self, _context: &Context, _args: &Map) -> Result<Map, CallError> {
        let report = sources()?.to_map().into_iter();
        Ok(report.map(|(uri, repos)| (uri.into(), repos.into_iter().map(Value::from).collect())).collect())
    }

    fn one(&self, _context: &Context, repo: &str, _args: &Map) -> Result<Map, CallError> {
        reject_ppa(repo)?;
        Ok(find(&sources()?, &Source::line(repo)).unwrap_or_default())
    }

    fn delete(&self, context: &Context, repo: &str, _args: &Map) -> Result<Value, CallError> {
        reject_ppa(repo)?;
        let report = remove(repo)?;
        self.refresh(context, &Options::default())?;
        Ok(report.into())
    }

    fn modify(&self, context: &Context, repo: &str, args: Map) -> Result<Value, CallError> {
        reject_ppa(repo)?;
        let refresh = args.get("refresh_db").or_else(|| args.get("refresh")).is_none_or(Value::is_truthy);
        let saltenv = args.get("saltenv").map_or_else(|| "base".to_owned(), ToString::to_string);
        let aptkey = args.get("aptkey").is_none_or(is_true);
        modify(context, repo, &saltenv, aptkey && has_apt_key(), args)?;
        if refresh {
            self.refresh(context, &Options::default())?;
        }
        Ok(map! {repo => self.one(context, repo, &Map::new())?}.into())
    }

    fn named(&self, name: &str, args: &mut Map) -> String {
        args.insert("name".into(), name.into());
        match args.shift_remove("ppa").filter(Value::is_truthy) {
            Some(ppa) => format!("ppa:{ppa}"),
            None => name.to_owned(),
        }
    }

    fn described(&self, repo: &str, args: &Map) -> Map {
        described(repo, args)
    }

    fn differs(&self, have: &Map, desired: &Map, args: &Map) -> bool {
        differs(have, desired, args)
    }

    /// Matches a repository by URI and distribution; its architectures may differ.
    fn is_match(&self, repo: &str, repository: &Map) -> bool {
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        let have = repository.get("architectures").and_then(Vec::from_value).unwrap_or_default();
        sorted(have) == sorted(Source::line(repo).architectures())
    }

    fn delete_key(&self, context: &Context, args: &Map) -> Result<Value, CallError> {
        let directory = args.get("keydir").filter(|directory| directory.is_truthy()).map(ToString::to_string);
        del_repo_key(context, None, args.get("aptkey").is_none_or(is_true), directory, args.clone())
    }

    fn has_keys(&self) -> bool {
        true
    }
}

fn sources() -> Result<Sources, CallError> {
    Sources::read().map_err(CallError::execution)
}

/// Rejects PPAs of Ubuntu, whose URIs only Launchpad can resolve.
fn reject_ppa(repo: &str) -> Result<(), CallError> {
    if repo.starts_with("ppa:") {
        return Err(CallError::Execution(format!("cannot parse \"ppa:\" style repo definitions: {repo}")));
    }
    Ok(())
}

/// Returns the first source with this type, URI and distribution that has one of the components.
fn find(sources: &Sources, source: &Source) -> Option<Map> {
    let text = |repository: &Map, key: &str| repository.get(key).map(ToString::to_string).unwrap_or_default();
    sources.to_map().into_values().flatten().find(|repository| {
        let comps = repository.get("comps").and_then(Vec::<String>::from_value).unwrap_or_default();
        text(repository, "type") == source.kind()
            && same_uri(&text(repository, "uri"), &source.uri())
            && text(repository, "dist") == source.dist()
            && (source.comps().is_empty() || source.comps().iter().any(|comp| comps.contains(comp)))
    })
}

fn remove(repo: &str) -> Result<String, CallError> {
    let target = Source::line(repo);
    let mut sources = sources()?;
    let mut from: Vec<String> = Vec::new();
    sources.list.retain_mut(|source| {
        let fits = source.is_source()
            && source.kinds().contains(&target.kind())
            && source.architectures() == target.architectures()
            && source.uris().iter().any(|uri| same_uri(uri, &target.uri()))
            && source.suites().contains(&target.dist());
        let (have, unwanted) = (source.comps(), target.comps());
        let same = have.len() == unwanted.len() && have.iter().all(|comp| unwanted.contains(comp));
        if !fits || !(same || have.iter().any(|comp| unwanted.contains(comp))) {
            return true;
        }
        from.push(source.file.clone());
        if same {
            let suites: Vec<String> = source.suites().into_iter().filter(|suite| *suite != target.dist()).collect();
            source.set("suites", &suites.clone().into());
            return !suites.is_empty();
        }
        let comps: Vec<String> = have.into_iter().filter(|comp| !unwanted.contains(comp)).collect();
        source.set("comps", &comps.clone().into());
        !comps.is_empty()
    });
    if from.is_empty() {
        return Err(CallError::Execution(format!("Repo {repo} doesn't exist in the sources.list(s)")));
    }
    sources.write().map_err(CallError::execution)?;
    from.dedup();
    let mut report = String::new();
    for file in from {
        let is_used = sources.list.iter().any(|source| source.file == file && source.is_source());
        let has_lines = sources.list.iter().any(|source| source.file == file);
        if !is_used && file.contains("sources.list.d/") && Path::new(&file).is_file() {
            user_files::remove_file(&file).map_err(CallError::execution)?;
            report += &format!("File {file} containing repo '{repo}' has been removed.");
            continue;
        }
        if !has_lines {
            files::write_atomic(&file, b"", 0o644).map_err(CallError::execution)?;
        }
        report += &format!("Repo '{repo}' has been removed from {file}.\n");
    }
    Ok(report)
}

/// Arguments that are written into a source.
const LINE_ARGUMENTS: [&str; 8] = ["uri", "comps", "architectures", "disabled", "file", "dist", "signedby", "trusted"];
const SECTION_ARGUMENTS: [&str; 3] = ["uris", "suites", "types"];

fn modify(context: &Context, repo: &str, saltenv: &str, aptkey: bool, mut kwargs: Map) -> Result<(), CallError> {
    let mut sources = sources()?;
    let entry = Source::line(repo);
    if !entry.is_source() {
        return Err(CallError::Execution(format!(
            "Name {repo} is not valid. This must be the complete repo entry as seen in the sources file"
        )));
    }
    kwargs.insert("signedby".into(), entry.signed_by().into());
    add_key(context, &entry.signed_by(), saltenv, aptkey, &kwargs)?;
    let comps = kwargs.get("comps").filter(|comps| !comps.is_nil()).map(names);
    let mut all_comps = entry.comps();
    all_comps.extend(comps.iter().flatten().filter(|comp| !entry.comps().contains(comp)).cloned());
    kwargs.insert("comps".into(), comps.unwrap_or_else(|| entry.comps()).into());
    let architectures = kwargs.get("architectures").filter(|value| !value.is_nil()).map(names);
    let architectures = architectures.unwrap_or_else(|| entry.architectures());
    kwargs.insert("architectures".into(), architectures.clone().into());
    let flag = |key: &str| kwargs.get(key).map(|value| bool::from_value(value).unwrap_or_default());
    if let Some(disabled) = flag("disabled").or_else(|| flag("enabled").map(|enabled| !enabled)) {
        kwargs.insert("disabled".into(), disabled.into());
    }
    let text = |key: &str| kwargs.get(key).filter(|value| !value.is_nil()).map(ToString::to_string);
    let is_match = |source: &Source| {
        let by_name = source.kinds().contains(&entry.kind())
            && source.uris().iter().any(|uri| same_uri(uri, &entry.uri()))
            && source.suites().contains(&entry.dist());
        let by_arguments = text("dist").is_some_and(|dist| source.suites().contains(&dist))
            && text("type").is_some_and(|kind| source.kinds().contains(&kind));
        source.is_source()
            && (by_name || by_arguments)
            && (all_comps.iter().any(|comp| source.comps().contains(comp))
                || source.comps().is_empty()
                || source.architectures() != architectures)
    };
    let comment = kwargs.get("comments").map(combined);
    let index = if let Some(index) = position(&sources.list, text("file").as_deref(), is_match) {
        index
    } else {
        let trusted = kwargs.get("trusted").is_some_and(|value| bool::from_value(value).unwrap_or_default());
        if !aptkey && entry.signed_by().is_empty() && !trusted {
            return Err(CallError::Execution("missing 'signedby' or 'trusted' option when apt-key is missing".into()));
        }
        sources.list.push(Source::for_file(&entry, text("file").as_deref()));
        sources.list.len() - 1
    };
    let Some(source) = sources.list.get_mut(index) else { return Ok(()) };
    if let Some(comment) = comment {
        source.set_comment(&comment);
    }
    source.replace_options(&entry);
    source.replace_uri(&entry.uri());
    if architectures.is_empty() && source.architectures().is_empty() {
        kwargs.shift_remove("architectures");
    }
    for (key, value) in &kwargs {
        let key = key.to_string();
        if LINE_ARGUMENTS.contains(&key.as_str()) || source.is_section() && SECTION_ARGUMENTS.contains(&key.as_str()) {
            source.set(&key, value);
        }
    }
    if !source.is_section() && source.uri() != entry.uri() {
        source.set("uri", &entry.uri().into());
    }
    sources.write().map_err(CallError::execution)
}

/// Returns the index of the first match, of one in the named file if there is one: a match of another file would be
/// moved into the file, which has it already, at each run.
pub(super) fn position(list: &[Source], file: Option<&str>, is_match: impl Fn(&Source) -> bool) -> Option<usize> {
    let is_in_file = |source: &Source| file == Some(source.file.as_str()) && is_match(source);
    list.iter().position(is_in_file).or_else(|| list.iter().position(is_match))
}

/// Joins comments into one string.
fn combined(comments: &Value) -> String {
    match comments {
        Value::List(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ").trim().to_owned(),
        one => one.to_string().trim().to_owned(),
    }
}

/// Returns the source that the arguments of a state describe, for comparison by `pkgrepo.managed`.
fn described(repo: &str, kwargs: &Map) -> Map {
    let mut entry = Source::line(repo);
    for key in LINE_ARGUMENTS {
        let Some(value) = kwargs.get(key) else { continue };
        let value = if ["comps", "architectures"].contains(&key) { names(value).into() } else { value.clone() };
        if key != "file" {
            entry.set(key, &value);
        }
    }
    let file = kwargs.get("file").filter(|file| !file.is_nil()).map(ToString::to_string);
    let mut source = Source::for_file(&entry, file.as_deref());
    if source.is_section() {
        for key in SECTION_ARGUMENTS {
            if let Some(value @ Value::List(_)) = kwargs.get(key) {
                source.set(key, value);
            }
        }
        if !entry.architectures().is_empty() {
            source.set("architectures", &entry.architectures().into());
        }
        if !entry.signed_by().is_empty() {
            source.set("signedby", &entry.signed_by().into());
        }
        source.set("disabled", &entry.is_disabled().into());
    }
    let mut report = source.to_map(&source.kind(), &source.uri(), &source.dist());
    report.shift_remove("enabled");
    report.insert("line".into(), source.show().into());
    report.insert("signedby".into(), entry.signed_by().into());
    report
}

/// Returns the fields of a line, with the components sorted.
fn sorted_fields(line: &str) -> Vec<String> {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if let Some(comps) = words.get_mut(3..) {
        comps.sort();
    }
    words
}

fn differs(pre: &Map, desired: &Map, kwargs: &Map) -> bool {
    let sorted = |value: &Value| {
        let mut names = Vec::<String>::from_value(value).unwrap_or_default();
        names.sort();
        names.dedup();
        names
    };
    desired.iter().any(|(key, value)| {
        let Some(have) = pre.get(key) else { return false };
        match key.as_str().unwrap_or_default() {
            "comps" => sorted(value) != sorted(have),
            "architectures" if value.is_truthy() => sorted(value) != sorted(have),
            "line" => {
                let have = have.to_string();
                let (line, comment) = have.split_once('#').unwrap_or((&have, ""));
                let is_enabled = !desired.get("disabled").is_some_and(Value::is_truthy);
                let report = kwargs.get("comments").map(combined);
                is_enabled
                    && (sorted_fields(&value.to_string()) != sorted_fields(line)
                        || report.is_some_and(|report| report != comment.trim()))
            }
            _ => value.to_string() != have.to_string(),
        }
    })
}
