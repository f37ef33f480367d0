//! zypper's repositories: read from its `.repo` files, and changed by zypper.

use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_function::CallError;
use brine_host::programs::argument;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

use super::{Call, Zypper, elements, named, words};
use crate::pkg::manager::{Packages, Repositories};
use crate::pkg::options::{Options, is_true};
use crate::pkg::rpm::repo_files::{Section, describe, differs, repositories};

const REPO_DIRECTORY: &str = "etc/zypp/repos.d";

fn sections(args: &Map) -> Result<IndexMap<String, (PathBuf, Section)>, CallError> {
    let root = Options::read(args).root.unwrap_or_else(|| "/".into());
    repositories(&[Path::new(&root).join(REPO_DIRECTORY)]).map_err(CallError::execution)
}

/// Returns a repository in Salt's form: 0 and 1 are booleans, and `NONE` is null.
fn to_map(alias: &str, section: &Section) -> Map {
    let value = |text: &str| match text {
        "0" => false.into(),
        "1" => true.into(),
        "NONE" => Value::Nil,
        text => Value::from(text),
    };
    let mut report: Map = section.options.iter().map(|(key, text)| (key.into(), value(text))).collect();
    report.insert("alias".into(), alias.into());
    report
}

fn failed(text: String) -> CallError {
    CallError::Execution(text)
}

/// Adds the root path to a URL without a path.
fn complete(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) if !rest.contains('/') => format!("{scheme}://{rest}/"),
        _ => url.to_owned(),
    }
}

/// Adds a new repository.
fn add(context: &Context, repo: &str, args: &Map, options: &Options) -> Result<(), CallError> {
    let text = |key: &str| args.get(key).filter(|value| value.is_truthy()).map(ToString::to_string);
    let url = text("url").or_else(|| text("mirrorlist")).or_else(|| text("baseurl")).ok_or_else(|| {
        failed(format!("Repository '{repo}' not found, and neither 'baseurl' nor 'mirrorlist' was specified"))
    })?;
    if !url.split_once(':').is_some_and(|(scheme, _)| !scheme.is_empty() && !scheme.contains('/')) {
        return Err(failed(format!("Repository '{repo}' not found and URL for baseurl/mirrorlist is malformed")));
    }
    let have = sections(args)?;
    let same = have.iter().find(|(_, (_, section))| {
        section.options.get("baseurl").is_some_and(|other| complete(other) == complete(&url))
    });
    if let Some((alias, _)) = same {
        return Err(failed(format!("Repository '{repo}' already exists as '{alias}'.")));
    }
    let command = words(&["ar", &argument(&url)?, &argument(repo)?]);
    Call { xml: true, ..Call::default() }.run(context, options, &command)?;
    if !sections(args)?.contains_key(repo) {
        return Err(failed(format!(
            "Failed add new repository '{repo}' for unspecified reason. Please check zypper logs."
        )));
    }
    Ok(())
}

/// Returns the options of zypper for the changes of a repository.
fn changes(args: &Map) -> Vec<String> {
    const SWITCHES: [(&str, &str, &str); 4] = [
        ("enabled", "--enable", "--disable"),
        ("refresh", "--refresh", "--no-refresh"),
        ("cache", "--keep-packages", "--no-keep-packages"),
        ("gpgcheck", "--gpgcheck", "--no-gpgcheck"),
    ];
    let mut words = Vec::new();
    for (key, yes, no) in SWITCHES {
        words.extend(args.get(key).map(|value| if is_true(value) { yes } else { no }.to_owned()));
    }
    words.extend(args.get("priority").map(|priority| format!("--priority={priority}")));
    let name = args.get("name").or_else(|| args.get("humanname")).filter(|name| name.is_truthy());
    words.extend(name.into_iter().flat_map(|name| ["--name".to_owned(), name.to_string()]));
    words
}

impl Repositories for Zypper {
    fn all(&self, _context: &Context, args: &Map) -> Result<Map, CallError> {
        let sections = sections(args)?;
        Ok(sections.iter().map(|(alias, (_, section))| (alias.into(), to_map(alias, section).into())).collect())
    }

    fn one(&self, _context: &Context, repo: &str, args: &Map) -> Result<Map, CallError> {
        Ok(sections(args)?.get(repo).map(|(_, section)| to_map(repo, section)).unwrap_or_default())
    }

    fn delete(&self, context: &Context, repo: &str, args: &Map) -> Result<Value, CallError> {
        let missing = || failed(format!("Repository '{repo}' not found."));
        if !sections(args)?.contains_key(repo) {
            return Err(missing());
        }
        let command = words(&["rr", "--loose-auth", "--loose-query", &argument(repo)?]);
        let answer = Call { xml: true, ..Call::default() }.run(context, &Options::read(args), &command)?;
        let elements = elements(&answer);
        let is_done = named(&elements, "progress").next().is_some();
        let message = named(&elements, "message").next().filter(|_| is_done).ok_or_else(missing)?;
        Ok(map! {repo => true, "message" => message.text.trim()}.into())
    }

    fn modify(&self, context: &Context, repo: &str, args: Map) -> Result<Value, CallError> {
        let options = Options::read(&args);
        let mut args = args;
        let have = self.one(context, repo, &args)?;
        let baseurl = args.get("baseurl").filter(|_| !have.is_empty());
        let mut is_added = have.is_empty();
        if baseurl.is_some_and(|baseurl| have.get("baseurl") != Some(baseurl)) {
            // zypper cannot change a URL, so the repository is added again, with all its options.
            self.delete(context, repo, &args)?;
            for (key, value) in have {
                args.entry(key).or_insert(value);
            }
            args.entry("cache".into()).or_insert_with(|| false.into());
            is_added = true;
        }
        if is_added {
            add(context, repo, &args, &options)?;
        }
        let changes = changes(&args);
        if !changes.is_empty() {
            let command = [words(&["mr"]), changes.clone(), vec![argument(repo)?]].concat();
            Call { xml: true, refreshable: true, ..Call::default() }.run(context, &options, &command)?;
        }
        if options.import_keys {
            // The key is imported when the repository is refreshed.
            self.refresh(context, &Options { repos: vec![repo.to_owned()], ..options })?;
        }
        let mut report = self.one(context, repo, &args)?;
        if !is_added && changes.is_empty() && !args.get("gpgautoimport").is_some_and(is_true) {
            report.insert("comment".into(), "Specified arguments did not result in modification of repo".into());
        }
        Ok(report.into())
    }

    fn named(&self, name: &str, args: &mut Map) -> String {
        describe(name, args);
        name.to_owned()
    }

    fn differs(&self, have: &Map, desired: &Map, _args: &Map) -> bool {
        desired.iter().any(|(key, value)| match (key.as_str(), have.get(key)) {
            (Some("enabled"), None) => true,
            (_, have) => differs(key, value, have),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_options_of_zypper() {
        for (args, expected) in [
            (map! {}, ""),
            (map! {"enabled" => true, "gpgcheck" => false, "name" => "Case"}, "--enable --no-gpgcheck --name Case"),
            (map! {"enabled" => "0", "refresh" => 1, "priority" => 90}, "--disable --refresh --priority=90"),
            (map! {"cache" => true}, "--keep-packages"),
        ] {
            assert_eq!(changes(&args).join(" "), expected);
        }
    }

    #[test]
    fn urls_without_a_path_are_completed() {
        for (url, expected) in
            [("http://a", "http://a/"), ("http://a/", "http://a/"), ("http://a/b", "http://a/b"), ("dir:/a", "dir:/a")]
        {
            assert_eq!(complete(url), expected);
        }
    }
}
