//! Groups of packages, and environments, which are groups of groups.

use std::collections::{BTreeMap, BTreeSet};

use brine_context::Context;
use brine_function::arguments::names;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

use super::{Program, settings};
use crate::pkg::{Options, packages};

/// Execution functions of `pkg` about groups.
pub static FUNCTIONS: Functions<Context> = registry!("pkg", [group_list, group_info, group_diff, group_install]);

/// The kinds of members of a group, in the order of results.
pub const KINDS: [&str; 4] = ["mandatory", "optional", "default", "conditional"];
/// The headings of `dnf grouplist hidden` with the keys of the result.
const SECTIONS: [(&str, &str); 5] = [
    ("installed groups:", "installed"),
    ("available groups:", "available"),
    ("installed environment groups:", "installed environments"),
    ("available environment groups:", "available environments"),
    ("available language groups:", "available languages"),
];

/// A group of packages, or an environment.
#[derive(Debug, Default, PartialEq)]
struct Group {
    is_environment: bool,
    name: String,
    id: String,
    description: String,
    /// Packages, or groups of an environment, by [`KINDS`].
    members: BTreeMap<&'static str, BTreeSet<String>>,
}

/// Whether the package manager of this host has groups: dnf and yum do.
pub fn are_available(context: &Context) -> bool {
    packages(context).is_ok_and(|manager| manager.is_rpm() && context.os_family() != "Suse")
}

/// Returns the program of this host, if its package manager has groups.
fn program(context: &Context) -> Result<Program, CallError> {
    if are_available(context) {
        return Program::of_host(context);
    }
    Err(CallError::Execution("groups of packages are available with dnf and yum only".into()))
}

/// Return the groups and environments, installed and available. With dnf and yum.
///
/// CLI Example:
///
///     salt '*' pkg.group_list
#[function]
pub fn group_list(context: &Context) -> CallResult {
    let program = program(context)?;
    let words: &[&str] =
        if program == Program::Dnf5 { &["group", "list", "--hidden"] } else { &["grouplist", "hidden"] };
    let output = program.run(context, words.iter().copied())?.stdout;
    Ok(if program == Program::Dnf5 { listed_as_table(&output) } else { listed(&output) }.into())
}

/// Returns an empty result of `group_list`.
fn nothing_listed() -> Map {
    SECTIONS
        .iter()
        .map(|(_, key)| {
            let empty = if *key == "available languages" { Value::map() } else { Vec::<Value>::new().into() };
            ((*key).into(), empty)
        })
        .collect()
}

/// Parses the sections of dnf and yum.
fn listed(text: &str) -> Map {
    let (mut listing, mut section) = (nothing_listed(), None);
    for line in text.lines() {
        let lower = line.trim().to_lowercase();
        if lower == "done" {
            break;
        }
        if let Some((_, key)) = SECTIONS.iter().find(|(heading, _)| *heading == lower) {
            section = Some(*key);
            continue;
        }
        let Some(of_section) = section.and_then(|key| listing.get_mut(key)) else { continue };
        let line = line.trim();
        match of_section {
            Value::List(groups) if !line.is_empty() => groups.push(line.into()),
            Value::Map(languages) => {
                if let Some((name, language)) = line.strip_suffix(']').and_then(|line| line.rsplit_once(" [")) {
                    languages.insert(line.into(), map! {"name" => name, "language" => language}.into());
                }
            }
            _ => {}
        }
    }
    listing
}

/// Parses the table of dnf5: id, name, and whether it is installed.
fn listed_as_table(text: &str) -> Map {
    let mut listing = nothing_listed();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [id, _, .., is_installed] = words[..] else { continue };
        let section = match is_installed {
            "yes" => "installed",
            "no" => "available",
            _ => continue,
        };
        if let Some(Value::List(groups)) = listing.get_mut(section) {
            groups.push(id.into());
        }
    }
    listing
}

/// Return the members of a group or environment: `mandatory`, `optional`, `default` and `conditional` packages, or
/// groups. With dnf and yum. Accepts fromrepo, enablerepo and disablerepo.
///
/// CLI Example:
///
///     salt '*' pkg.group_info 'Perl Support'
#[function]
pub fn group_info(
    context: &Context,
    /// Name of the package.
    name: String,
    /// Whether the packages of an environment's groups are returned instead of the groups.
    #[default(false)]
    expand: bool,
    /// Whether groups within the group are left out.
    #[default]
    ignore_groups: Value,
    /// `fromrepo`, `enablerepo` and `disablerepo`: repositories, as lists or with commas.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut visited: BTreeSet<String> = names(&ignore_groups).into_iter().collect();
    let group = info(context, &name, expand, &Options::read(&kwargs), &mut visited)?;
    let kind = if group.is_environment { "environment group" } else { "package group" };
    let mut about: Map = members(&group).collect();
    // As in Salt, a missing name or id is null.
    let [name, id] = [group.name, group.id].map(|text| if text.is_empty() { Value::Nil } else { text.into() });
    about.extend(map! {"type" => kind, "group" => name, "id" => id, "description" => group.description});
    Ok(about.into())
}

/// Returns the members of a group by kind.
fn members(group: &Group) -> impl Iterator<Item = (Value, Value)> + '_ {
    KINDS.into_iter().map(|kind| (kind.into(), group.members.get(kind).into_iter().flatten().cloned().collect()))
}

/// Returns a group; with `expand`, an environment with the packages of its groups. `visited` collects the expanded
/// groups, which are not expanded again.
fn info(
    context: &Context,
    name: &str,
    expand: bool,
    options: &Options,
    visited: &mut BTreeSet<String>,
) -> Result<Group, CallError> {
    let program = program(context)?;
    let mut words = vec!["--quiet".to_owned()];
    words.extend(settings(options));
    words.extend(
        if program == Program::Dnf5 { vec!["group", "info"] } else { vec!["groupinfo"] }.into_iter().map(String::from),
    );
    words.push(argument(name)?);
    let mut group = parse(&program.run(context, words)?.stdout);
    if group.name.is_empty() && group.id.is_empty() {
        return Err(CallError::Execution(format!("Group '{name}' not found")));
    }
    if !(expand && group.is_environment) {
        return Ok(group);
    }
    let groups: Vec<String> = std::mem::take(&mut group.members).into_values().flatten().collect();
    for member in groups {
        if !visited.insert(member.clone()) {
            continue;
        }
        // `@` distinguishes ids from names; names of several words are only found without it.
        let expanded = info(context, &format!("@{member}"), true, options, visited)
            .or_else(|_| info(context, &member, true, options, visited))?;
        for (kind, packages) in expanded.members {
            group.members.entry(kind).or_default().extend(packages);
        }
    }
    Ok(group)
}

/// Parses `groupinfo`: fields, and headings followed by a member per line. dnf5 prints the first member in the line of
/// the heading.
fn parse(text: &str) -> Group {
    let (mut group, mut kind) = (Group::default(), None);
    for line in text.lines() {
        let member = line.trim().trim_start_matches(|c: char| c.is_ascii_punctuation()).trim();
        let (key, value) = line.split_once(':').map_or(("", ""), |(key, value)| (key.trim(), value.trim()));
        let key = key.to_lowercase();
        let heading = key.strip_suffix(" packages").or_else(|| key.strip_suffix(" groups"));
        if let Some(section) = heading.and_then(|heading| KINDS.into_iter().find(|kind| *kind == heading)) {
            kind = Some(section);
            let members = group.members.entry(section).or_default();
            members.extend((!value.is_empty()).then(|| value.to_owned()));
            continue;
        }
        match key.as_str() {
            "environment group" => (group.is_environment, group.name) = (true, value.to_owned()),
            "group" | "name" => value.clone_into(&mut group.name),
            "group-id" | "environment-id" | "id" => value.clone_into(&mut group.id),
            "description" => value.clone_into(&mut group.description),
            _ => {
                if let Some(kind) = kind.filter(|_| !member.is_empty()) {
                    group.members.entry(kind).or_default().insert(member.to_owned());
                }
            }
        }
    }
    group
}

/// Return which packages of a group are installed, and which are not, by `mandatory`, `optional`, `default` and
/// `conditional`. With dnf and yum. Accepts fromrepo, enablerepo and disablerepo.
///
/// CLI Example:
///
///     salt '*' pkg.group_diff 'Perl Support'
#[function]
pub fn group_diff(
    context: &Context,
    /// Name of the package.
    name: String,
    /// `fromrepo`, `enablerepo` and `disablerepo`: repositories, as lists or with commas.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let options = Options::read(&kwargs);
    let group = info(context, &name, true, &options, &mut BTreeSet::new())?;
    let installed = packages(context)?.installed(context, &Options::default())?;
    let difference = KINDS.into_iter().map(|kind| {
        let members = group.members.get(kind).into_iter().flatten().cloned();
        let (there, missing): (Vec<String>, Vec<String>) = members.partition(|name| installed.contains_key(name));
        (kind.into(), map! {"installed" => there, "not installed" => missing}.into())
    });
    Ok(Value::Map(difference.collect()))
}

/// Install the mandatory and default packages of groups, and return the changes. With dnf and yum. Accepts the arguments of
/// `pkg.install`.
///
/// skip
///     Default packages that are not installed.
/// include
///     Other packages that are installed, too.
///
/// CLI Example:
///
///     salt '*' pkg.group_install 'Perl Support' skip=perl-CPAN
#[function]
pub fn group_install(
    context: &Context,
    /// Name of the package.
    name: Value,
    /// Packages of the group that are not installed.
    #[default]
    skip: Value,
    /// Optional packages of the group that are installed, too.
    #[default]
    include: Value,
    /// Options of the package manager, as in the state `pkg.installed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let (groups, skip, options) = (names(&name), names(&skip), Options::read(&kwargs));
    if groups.is_empty() {
        return Err(CallError::Invocation {
            function: "pkg.group_install".into(),
            message: "no groups specified".into(),
        });
    }
    let mut targets: BTreeSet<String> = names(&include).into_iter().collect();
    for name in groups {
        let mut group = info(context, name.trim(), false, &options, &mut BTreeSet::new())?;
        targets.extend(group.members.remove("mandatory").unwrap_or_default());
        let default = group.members.remove("default").unwrap_or_default();
        targets.extend(default.into_iter().filter(|package| !skip.contains(package)));
    }
    let installed = packages(context)?.installed(context, &Options::default())?;
    targets.retain(|package| !installed.contains_key(package));
    if targets.is_empty() {
        return Ok(Value::map());
    }
    let mut keyword = kwargs;
    keyword.insert("pkgs".into(), targets.into_iter().collect());
    context.call("pkg.install", Args::keyword(keyword))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_dnf_and_dnf5_are_parsed() {
        let dnf = "Group: Tools\n Description: Some: tools\n Mandatory Packages:\n   one\n  +two\n Optional Packages:\n   three\n";
        let dnf5 = "Id                   : tools\nName                 : Tools\nDescription          : Some: tools\n\
                    Mandatory packages   : one\n                     : two\nOptional packages    : three\n";
        let expected = |id: &str| Group {
            name: "Tools".into(),
            id: id.into(),
            description: "Some: tools".into(),
            members: BTreeMap::from([
                ("mandatory", ["one", "two"].map(str::to_owned).into()),
                ("optional", ["three".to_owned()].into()),
            ]),
            ..Group::default()
        };
        assert_eq!(parse(dnf), expected(""));
        assert_eq!(parse(dnf5), expected("tools"));
        let environment = parse("Environment Group: Server\n Environment-Id: server\n Mandatory Groups:\n   Core\n");
        assert!(environment.is_environment && environment.members["mandatory"].contains("Core"));
        assert_eq!(parse("no such group\n"), Group::default());
    }

    #[test]
    fn lists_of_dnf_and_dnf5_are_parsed() {
        let text = "Last metadata\nAvailable Environment Groups:\n   Server\nInstalled Groups:\n   Tools\n\
                    Available Language Groups:\n   German Support [de]\nDone\n";
        let groups = listed(text);
        assert_eq!(groups.get("available environments"), Some(&vec![Value::from("Server")].into()));
        assert_eq!(groups.get("installed"), Some(&vec![Value::from("Tools")].into()));
        let german = map! {"German Support [de]" => map! {"name" => "German Support", "language" => "de"}};
        assert_eq!(groups.get("available languages"), Some(&german.into()));
        let table = listed_as_table("ID     Name        Installed\ntools  Tools yes   no\ncore   Core        yes\n");
        assert_eq!(table.get("available"), Some(&vec![Value::from("tools")].into()));
        assert_eq!(table.get("installed"), Some(&vec![Value::from("core")].into()));
    }
}
