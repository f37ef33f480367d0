//! The functions of `pkg` that are about apt's repositories and their keys.

use std::path::{Path, PathBuf};

use brine_core::function::CallError;
use brine_core::value::FromValue;
use brine_core::{Map, Value, files, functions, map};

use super::packages;
use super::sources::{Source, Sources};
use crate::context::Context;
use crate::modules::programs::run;
use crate::modules::user::names;

functions! {
    module "pkg", context Context;

    /// All repositories, by where they are.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.list_repos
    fn list_repos(_context, **_kwargs) {
        let told = sources()?.told().into_iter();
        Ok(told.map(|(uri, repos)| (uri.into(), repos.into_iter().map(Value::from).collect())).collect::<Map>().into())
    }

    /// What there is of a repository that is said as a line of `sources.list`; an empty mapping if there is nothing.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.get_repo "deb http://deb.debian.org/debian stable main"
    fn get_repo(_context, repo: String, **_kwargs) {
        refuse_ppa(&repo)?;
        Ok(find(&sources()?, &Source::line(&repo)).unwrap_or_default().into())
    }

    /// Takes a repository out of apt's files, and a file of its own with it.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.del_repo "deb http://deb.debian.org/debian stable main"
    fn del_repo(context, repo: String, **_kwargs) {
        refuse_ppa(&repo)?;
        let told = remove(&repo)?;
        packages().refresh(context)?;
        Ok(told.into())
    }

    /// Writes a repository, that is said as a line of `sources.list`, into apt's files.
    ///
    /// Takes dist, comps, architectures, file, enabled, disabled, comments, trusted, refresh, and for its key key_url, or
    /// keyid and keyserver, or key_text.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.mod_repo "deb http://deb.debian.org/debian stable main" comps=main,contrib
    fn mod_repo(context, repo: String, saltenv: String = "base".to_owned(), aptkey: bool = true, **kwargs) {
        refuse_ppa(&repo)?;
        let refresh = kwargs.get("refresh_db").or_else(|| kwargs.get("refresh")).is_none_or(Value::is_truthy);
        modify(context, &repo, &saltenv, aptkey && has_apt_key(), kwargs)?;
        if refresh {
            packages().refresh(context)?;
        }
        Ok(map! {repo.as_str() => get_repo(context, repo.clone(), Map::new())?}.into())
    }

    /// Adds a key that repositories are signed with: from a file, a text, or a key server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.add_repo_key 'salt://apt/sources/test.key'
    fn add_repo_key(
        context,
        path: Option<String> = None,
        text: Option<String> = None,
        keyserver: Option<String> = None,
        keyid: Option<String> = None,
        saltenv: String = "base".to_owned(),
        aptkey: bool = true,
        keydir: Option<String> = None,
        keyfile: Option<String> = None
    ) {
        let keys = Keys { by_apt_key: aptkey && has_apt_key(), folder: keydir.unwrap_or_else(|| KEYRINGS.into()).into() };
        let done = match (path, text, keyserver, keyid) {
            (Some(path), ..) => keys.add_file(context, &path, &saltenv, keyfile.as_deref()),
            (_, Some(text), ..) => apt_key_add(context, text.as_bytes()),
            (_, _, Some(server), Some(id)) => keys.receive(context, &server, &id, keyfile.as_deref()),
            (_, _, Some(server), None) => {
                Err(CallError::Execution(format!("No keyid or keyid too short for keyserver: {server}")))
            }
            (_, _, None, Some(id)) => Err(CallError::Execution(format!("No keyserver specified for keyid: {id}"))),
            (None, None, None, None) => Err(CallError::Execution("add_repo_key() takes at least 1 argument (0 given)".into())),
        };
        match done {
            Ok(()) => Ok(true.into()),
            Err(CallError::Execution(error)) => {
                tracing::error!(jid = context.job.jid, error, "a key of a repository cannot be added");
                Ok(false.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Removes a key that repositories are signed with.
    ///
    /// CLI Example:
    ///
    ///     salt '*' pkg.del_repo_key keyid=0123ABCD
    fn del_repo_key(context, name: Option<String> = None, aptkey: bool = true, keydir: Option<String> = None, **kwargs) {
        _ = name;
        let Some(id) = kwargs.get("keyid").filter(|id| id.is_truthy()).map(ToString::to_string) else {
            return Err(CallError::Execution("keyid or keyid_ppa and PPA name must be passed".into()));
        };
        let keys = Keys { by_apt_key: aptkey && has_apt_key(), folder: keydir.unwrap_or_else(|| KEYRINGS.into()).into() };
        keys.delete(context, &id)
    }
}

const KEYRINGS: &str = "/etc/apt/keyrings";

fn has_apt_key() -> bool {
    crate::modules::cmd::find_program("apt-key").is_some()
}

fn sources() -> Result<Sources, CallError> {
    Sources::read().map_err(CallError::execution)
}

/// Ubuntu's personal archives need to be looked up at Launchpad.
fn refuse_ppa(repo: &str) -> Result<(), CallError> {
    if repo.starts_with("ppa:") {
        return Err(CallError::Execution(format!("cannot parse \"ppa:\" style repo definitions: {repo}")));
    }
    Ok(())
}

fn same_uri(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}

/// What is told of the first source of this kind, place and distribution that has one of the components.
fn find(sources: &Sources, wanted: &Source) -> Option<Map> {
    let text = |told: &Map, key: &str| told.get(key).map(ToString::to_string).unwrap_or_default();
    sources.told().into_values().flatten().find(|told| {
        let comps = told.get("comps").and_then(Vec::<String>::from_value).unwrap_or_default();
        text(told, "type") == wanted.kind()
            && same_uri(&text(told, "uri"), &wanted.uri())
            && text(told, "dist") == wanted.dist()
            && (wanted.comps().is_empty() || wanted.comps().iter().any(|comp| comps.contains(comp)))
    })
}

fn remove(repo: &str) -> Result<String, CallError> {
    let wanted = Source::line(repo);
    let mut sources = sources()?;
    let mut from: Vec<String> = Vec::new();
    sources.list.retain_mut(|source| {
        let fits = source.is_source()
            && source.kinds().contains(&wanted.kind())
            && source.architectures() == wanted.architectures()
            && source.uris().iter().any(|uri| same_uri(uri, &wanted.uri()))
            && source.suites().contains(&wanted.dist());
        let (have, unwanted) = (source.comps(), wanted.comps());
        let same = have.len() == unwanted.len() && have.iter().all(|comp| unwanted.contains(comp));
        if !fits || !(same || have.iter().any(|comp| unwanted.contains(comp))) {
            return true;
        }
        from.push(source.file.clone());
        if same {
            let suites: Vec<String> = source.suites().into_iter().filter(|suite| *suite != wanted.dist()).collect();
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
    let mut told = String::new();
    for file in from {
        let is_used = sources.list.iter().any(|source| source.file == file && source.is_source());
        let has_lines = sources.list.iter().any(|source| source.file == file);
        if !is_used && file.contains("sources.list.d/") && Path::new(&file).is_file() {
            std::fs::remove_file(&file).map_err(CallError::execution)?;
            told += &format!("File {file} containing repo '{repo}' has been removed.");
            continue;
        }
        if !has_lines {
            files::write_atomic(&file, b"", 0o644).map_err(CallError::execution)?;
        }
        told += &format!("Repo '{repo}' has been removed from {file}.\n");
    }
    Ok(told)
}

/// What of the arguments is written into a source.
const OF_LINES: [&str; 8] = ["uri", "comps", "architectures", "disabled", "file", "dist", "signedby", "trusted"];
const OF_SECTIONS: [&str; 3] = ["uris", "suites", "types"];

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
    let architectures = kwargs.get("architectures").filter(|found| !found.is_nil()).map(names);
    let architectures = architectures.unwrap_or_else(|| entry.architectures());
    kwargs.insert("architectures".into(), architectures.clone().into());
    let flag = |key: &str| kwargs.get(key).map(|value| bool::from_value(value).unwrap_or_default());
    if let Some(disabled) = flag("disabled").or_else(|| flag("enabled").map(|enabled| !enabled)) {
        kwargs.insert("disabled".into(), disabled.into());
    }
    let text = |key: &str| kwargs.get(key).filter(|value| !value.is_nil()).map(ToString::to_string);
    let is_meant = |source: &Source| {
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
    let place = if let Some(place) = sources.list.iter().position(is_meant) {
        place
    } else {
        let trusted = kwargs.get("trusted").is_some_and(|value| bool::from_value(value).unwrap_or_default());
        if !aptkey && entry.signed_by().is_empty() && !trusted {
            return Err(CallError::Execution("missing 'signedby' or 'trusted' option when apt-key is missing".into()));
        }
        sources.list.push(Source::for_file(&entry, text("file").as_deref()));
        sources.list.len() - 1
    };
    let Some(source) = sources.list.get_mut(place) else { return Ok(()) };
    if let Some(comment) = comment {
        source.set_comment(&comment);
    }
    source.take_form(&entry);
    if architectures.is_empty() && source.architectures().is_empty() {
        kwargs.shift_remove("architectures");
    }
    for (key, value) in &kwargs {
        let key = key.to_string();
        if OF_LINES.contains(&key.as_str()) || source.is_section() && OF_SECTIONS.contains(&key.as_str()) {
            source.set(&key, value);
        }
    }
    if !source.is_section() && source.uri() != entry.uri() {
        source.set("uri", &entry.uri().into());
    }
    sources.write().map_err(CallError::execution)
}

/// Comments as one text.
pub fn combined(comments: &Value) -> String {
    match comments {
        Value::List(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ").trim().to_owned(),
        one => one.to_string().trim().to_owned(),
    }
}

/// The source that the arguments of a state describe: what `pkgrepo.managed` compares with what there is.
pub fn described(repo: &str, kwargs: &Map) -> Map {
    let mut entry = Source::line(repo);
    for key in OF_LINES {
        let Some(value) = kwargs.get(key) else { continue };
        let value = if ["comps", "architectures"].contains(&key) { names(value).into() } else { value.clone() };
        if key != "file" {
            entry.set(key, &value);
        }
    }
    let file = kwargs.get("file").filter(|file| !file.is_nil()).map(ToString::to_string);
    let mut source = Source::for_file(&entry, file.as_deref());
    if source.is_section() {
        for key in OF_SECTIONS {
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
    let mut told = source.told(&source.kind(), &source.uri(), &source.dist());
    told.shift_remove("enabled");
    told.insert("line".into(), source.show().into());
    told.insert("signedby".into(), entry.signed_by().into());
    told
}

/// Adds the key that the arguments name.
fn add_key(context: &Context, signed_by: &str, saltenv: &str, aptkey: bool, kwargs: &Map) -> Result<(), CallError> {
    let text = |key: &str| kwargs.get(key).filter(|value| value.is_truthy()).map(ToString::to_string);
    let signed_by = Path::new(signed_by);
    let folder = signed_by.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(KEYRINGS));
    let file = signed_by.file_name().and_then(|name| name.to_str());
    let keys = Keys { by_apt_key: aptkey, folder: folder.to_owned() };
    if let Some(ids) = kwargs.get("keyid") {
        let Some(server) = text("keyserver").filter(|_| ids.is_truthy()) else {
            return Err(CallError::Execution("both keyserver and keyid options required.".into()));
        };
        let one = [ids.clone()];
        for id in ids.as_list().unwrap_or(&one) {
            // YAML takes digits alone for a number.
            let id = id.as_i64().map_or_else(|| id.to_string(), |number| format!("{number:#x}"));
            let failed = |_| CallError::Execution(format!("Error: Could not add key: {id}"));
            keys.receive(context, &server, &id, file).map_err(failed)?;
        }
    } else if let Some(url) = text("key_url") {
        keys.add_file(context, &url, saltenv, file)?;
    } else if let Some(key) = text("key_text") {
        apt_key_add(context, key.as_bytes())?;
    }
    Ok(())
}

/// Where keys of repositories are kept.
struct Keys {
    /// By the program `apt-key`, which trusts them for every repository.
    by_apt_key: bool,
    /// Else here, in a file each.
    folder: PathBuf,
}

fn apt_key_add(context: &Context, key: &[u8]) -> Result<(), CallError> {
    let file = crate::modules::cmd::Scratch::new(key, None)?;
    let output = run(context, &strings(&["apt-key", "add", &file.path().display().to_string()]), &[])?;
    if !output.stdout.to_uppercase().starts_with("OK") {
        return Err(CallError::Execution(format!("Error: failed to add key:\n{}", output.stderr)));
    }
    Ok(())
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Keys {
    fn folder(&self) -> Result<&Path, CallError> {
        std::fs::create_dir_all(&self.folder)
            .map_err(|error| CallError::Execution(format!("{}: {error}", self.folder.display())))?;
        Ok(&self.folder)
    }

    /// Adds a key from a file or a web server. A readable key becomes a binary one, unless its file is to end with `.asc`.
    fn add_file(&self, context: &Context, url: &str, saltenv: &str, name: Option<&str>) -> Result<(), CallError> {
        let missing = || CallError::Execution(format!("Error: file not found: {url}"));
        let key =
            crate::fileclient::content(context, url, saltenv).map_err(CallError::Execution)?.ok_or_else(missing)?;
        if self.by_apt_key {
            return apt_key_add(context, &key)
                .map_err(|_| CallError::Execution(format!("Error: failed to add key from {url}")));
        }
        let name = name.or_else(|| Path::new(url).file_name().and_then(|name| name.to_str())).ok_or_else(missing)?;
        let target = self.folder()?.join(name);
        let is_readable = key.trim_ascii_start().starts_with(b"-----BEGIN PGP");
        let key = if is_readable && target.extension().is_none_or(|ending| ending != "asc") {
            binary(context, &key)?
        } else {
            key
        };
        files::write_atomic(&target, &key, 0o644).map_err(CallError::execution)
    }

    fn receive(&self, context: &Context, server: &str, id: &str, name: Option<&str>) -> Result<(), CallError> {
        let command = if self.by_apt_key {
            strings(&["apt-key", "adv", "--batch", "--keyserver", server, "--logger-fd", "1", "--recv-keys", id])
        } else {
            let name = name.ok_or_else(|| {
                CallError::Execution(
                    "You must define the name of the key file to save the key. See keyfile argument".into(),
                )
            })?;
            let file = self.folder()?.join(name);
            if listed(context, &file)?.iter().any(|have| have.ends_with(id.trim_start_matches("0x"))) {
                return Ok(());
            }
            let file = file.display().to_string();
            strings(&["gpg", "--no-default-keyring", "--keyring", &file, "--keyserver", server, "--recv-keys", id])
        };
        let output = run(context, &command, &[])?;
        match output.retcode {
            0 => Ok(()),
            _ => Err(CallError::Execution(format!("Error: key retrieval failed: {}", output.stderr))),
        }
    }

    fn delete(&self, context: &Context, id: &str) -> Result<Value, CallError> {
        if self.by_apt_key {
            let output = run(context, &strings(&["apt-key", "del", id]), &[])?;
            return match output.retcode {
                0 => Ok(id.into()),
                _ => Err(CallError::Execution(format!("Failed to remove keyid {id}: {}", output.stderr))),
            };
        }
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if listed(context, &entry.path())?.iter().any(|have| have.ends_with(id)) {
                std::fs::remove_file(entry.path()).map_err(CallError::execution)?;
                return Ok(id.into());
            }
        }
        Ok(false.into())
    }
}

/// The ids of the keys in a file.
fn listed(context: &Context, file: &Path) -> Result<Vec<String>, CallError> {
    let command =
        ["gpg", "--no-default-keyring", "--keyring", &file.display().to_string(), "--list-keys", "--with-colons"];
    let output = run(context, &strings(&command), &[])?;
    let keys = output.stdout.lines().filter(|line| line.starts_with("pub:"));
    Ok(keys.filter_map(|line| line.split(':').nth(4)).map(str::to_owned).collect())
}

/// A readable key as a binary one.
fn binary(context: &Context, key: &[u8]) -> Result<Vec<u8>, CallError> {
    let (readable, target) =
        (crate::modules::cmd::Scratch::new(key, None)?, crate::modules::cmd::Scratch::new(b"", None)?);
    let path = |scratch: &crate::modules::cmd::Scratch| scratch.path().display().to_string();
    let command = ["gpg", "--yes", "--output", &path(&target), "--dearmor", &path(&readable)];
    let output = run(context, &strings(&command), &[])?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("the key cannot be read by gpg: {}", output.stderr)));
    }
    std::fs::read(target.path()).map_err(CallError::execution)
}
