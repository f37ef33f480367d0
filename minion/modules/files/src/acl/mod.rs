//! `acl`: access control lists of files, with `getfacl` and `setfacl`.

pub(crate) mod state;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::Output;
use brine_system::user_files;
use brine_value::{Map, Value, list, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `acl`.
pub static FUNCTIONS: Functions<Context> = registry!("acl", [version, getfacl, wipefacls, modfacl, delfacl]);

/// Return the version of getfacl.
///
/// CLI Example:
///
///     salt '*' acl.version
#[function]
pub fn version(context: &Context) -> CallResult {
    let output = run(context, &["getfacl".into(), "--version".into()], &[])?;
    Ok(output.stdout.split_whitespace().nth(1).map_or(Value::Nil, Value::from))
}

/// Return the access control lists of files, and with `recursive` of everything below them: by file, the owner and
/// for each name the permissions as letters and as octal number.
///
/// CLI Example:
///
///     salt '*' acl.getfacl /tmp/house/kitchen /tmp/house/livingroom recursive=True
#[function]
pub fn getfacl(
    context: &Context,
    /// Paths of files and directories.
    #[rest]
    args: Vec<Value>,
    /// `recursive`: whether everything below a directory is included.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let files = files(&args)?;
    let output = run_acl_program(context, "getfacl", &["--absolute-names"], &kwargs, &[], &files)?;
    Ok(parse(&output.stdout).into())
}

/// Remove all entries from files, except those of the owner, the group and others.
///
/// CLI Example:
///
///     salt '*' acl.wipefacls /tmp/house/kitchen recursive=True
#[function]
pub fn wipefacls(
    context: &Context,
    /// Paths of files and directories.
    #[rest]
    args: Vec<Value>,
    /// `recursive`: whether everything below a directory is included.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    set_acl(context, &kwargs, &["-b".into()], &files(&args)?)
}

/// Set the permissions of a user or group on files; `d:user` and `default:user` set the defaults of a directory.
///
/// CLI Example:
///
///     salt '*' acl.modfacl user myuser rwx /tmp/house/kitchen
#[function]
pub fn modfacl(
    context: &Context,
    /// `user`, `group`, `other` or `mask`; with the prefix `d:` or `default:` a default entry.
    acl_type: String,
    /// Name of the user or group; empty for the owner.
    #[default]
    acl_name: String,
    /// Permissions, such as `rwx`.
    #[default]
    perms: String,
    /// Paths of files and directories.
    #[rest]
    args: Vec<Value>,
    /// `recursive`: whether everything below a directory is included.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let entry = format!("{}:{acl_name}:{perms}", short_type(&acl_type));
    set_acl(context, &kwargs, &["-m".into(), entry], &files(&args)?)
}

/// Remove the entry of a user or group from files.
///
/// CLI Example:
///
///     salt '*' acl.delfacl user myuser /tmp/house/kitchen
#[function]
pub fn delfacl(
    context: &Context,
    /// `user`, `group`, `other` or `mask`; with the prefix `d:` or `default:` a default entry.
    acl_type: String,
    /// Name of the user or group; empty for the owner.
    #[default]
    acl_name: String,
    /// Paths of files and directories.
    #[rest]
    args: Vec<Value>,
    /// `recursive`: whether everything below a directory is included.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let entry = format!("{}:{acl_name}", short_type(&acl_type));
    set_acl(context, &kwargs, &["-x".into(), entry], &files(&args)?)
}

fn files(args: &[Value]) -> Result<Vec<String>, CallError> {
    if args.is_empty() {
        return Err(CallError::Execution("You need to specify at least one file or directory to work with!".into()));
    }
    Ok(args.iter().map(ToString::to_string).collect())
}

fn run_acl_program(
    context: &Context,
    program: &str,
    first: &[&str],
    kwargs: &Map,
    what: &[String],
    files: &[String],
) -> Result<Output, CallError> {
    let recursive = kwargs.get("recursive").is_some_and(Value::is_truthy).then(|| "-R".to_owned());
    let mut words = vec![program.to_owned()];
    words.extend(first.iter().map(|word| (*word).to_owned()));
    words.extend(recursive);
    words.extend(what.iter().cloned());
    words.push("--".into());
    words.extend(files.iter().cloned());
    run(context, &words, &[])
}

/// Runs setfacl. Its error output is an error with `raise_err`, and is logged otherwise.
fn set_acl(context: &Context, kwargs: &Map, what: &[String], files: &[String]) -> Result<Value, CallError> {
    // setfacl follows links.
    let real = |file: &String| user_files::real(file).map(|path| path.display().to_string());
    let files = files.iter().map(real).collect::<Result<Vec<_>, _>>().map_err(CallError::execution)?;
    let output = run_acl_program(context, "setfacl", &[], kwargs, what, &files)?;
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
        if kwargs.get("raise_err").is_some_and(Value::is_truthy) {
            return Err(CallError::Execution(output.stderr));
        }
        tracing::error!(jid = context.job.jid, "{}", output.stderr);
    }
    Ok(true.into())
}

/// Converts an entry type to the short form that setfacl accepts, such as `d:u` for `default:user`.
fn short_type(kind: &str) -> String {
    let (default, kind) = match kind.split_once(':') {
        Some(("d" | "default", kind)) => ("d:", kind),
        _ => ("", kind),
    };
    let kind = match kind {
        "user" => "u",
        "group" => "g",
        "mask" => "m",
        "other" => "o",
        kind => kind,
    };
    format!("{default}{kind}")
}

/// Parses the output of getfacl into the result of `acl.getfacl`: by file.
fn parse(text: &str) -> Map {
    let mut all = Map::new();
    let mut file = String::new();
    for line in text.lines() {
        if let Some((key, value)) = line.strip_prefix("# ").and_then(|comment| comment.split_once(": ")) {
            if key == "file" {
                value.clone_into(&mut file);
                all.insert(value.into(), map! {"comment" => map! {}, "user" => list![], "group" => list![]}.into());
            }
            let Some(entry) = all.get_mut(file.as_str()).and_then(Value::as_map_mut) else { continue };
            if let Some(comment) = entry.get_mut("comment").and_then(Value::as_map_mut) {
                comment.insert(key.into(), value.into());
            }
            if key == "flags" {
                let flags = [("suid", 's'), ("sgid", 's'), ("sticky", 't')].into_iter().zip(value.chars());
                entry.extend(
                    flags.filter(|((_, set), flag)| set == flag).map(|((name, _), _)| (name.into(), true.into())),
                );
            }
            continue;
        }
        if let Some(entry) = all.get_mut(file.as_str()).and_then(Value::as_map_mut) {
            add(entry, line);
        }
    }
    all
}

/// Adds an entry such as `default:user:joe:rwx` to its file. An entry without a name is the owner's.
fn add(entry: &mut Map, line: &str) {
    let parts: Vec<&str> = line.split(':').collect();
    let (is_default, parts) = match parts.split_first() {
        Some((&"default", rest)) => (true, rest),
        _ => (false, &parts[..]),
    };
    let [kind, name, .., permissions] = parts else { return };
    let owner =
        || entry.get("comment").and_then(|comment| comment.get(if *kind == "user" { "owner" } else { "group" }));
    let name = match (*kind, *name) {
        ("user" | "group", "") => owner().map(ToString::to_string).unwrap_or_default(),
        (_, name) => name.to_owned(),
    };
    let may = |letter: char| permissions.contains(letter);
    let number =
        [('r', 4), ('w', 2), ('x', 1)].iter().filter(|(letter, _)| may(*letter)).map(|(_, bit)| bit).sum::<i64>();
    let what = map! {
        "permissions" => map! {"read" => may('r'), "write" => may('w'), "execute" => may('x')}, "octal" => number,
    };
    let place = if is_default {
        let defaults = entry.entry("defaults".into()).or_insert_with(Value::map);
        defaults.as_map_mut()
    } else {
        Some(entry)
    };
    let listed = place.map(|place| place.entry((*kind).into()).or_insert_with(|| list![]));
    if let Some(Value::List(listed)) = listed {
        listed.push(map! {name.as_str() => what}.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_getfacl_is_parsed() {
        let text = "# file: /srv\n# owner: root\n# group: staff\n# flags: -s-\nuser::rwx\nuser:joe:rw-\t#effective:r--\n\
                    group::r-x\nmask::r-x\nother::---\ndefault:user::rwx\ndefault:group:www:r-x\n\n";
        let entry = |name: &str, letters: &str, octal: i64| {
            let may = |letter: char| letters.contains(letter);
            let permissions = map! {"read" => may('r'), "write" => may('w'), "execute" => may('x')};
            map! {name => map! {"permissions" => permissions, "octal" => octal}}
        };
        let srv = map! {
            "comment" => map! {"file" => "/srv", "owner" => "root", "group" => "staff", "flags" => "-s-"},
            "user" => list![entry("root", "rwx", 7), entry("joe", "r", 4)],
            "group" => list![entry("staff", "rx", 5)],
            "sgid" => true,
            "mask" => list![entry("", "rx", 5)],
            "other" => list![entry("", "", 0)],
            "defaults" => map! {"user" => list![entry("root", "rwx", 7)], "group" => list![entry("www", "rx", 5)]},
        };
        assert_eq!(Value::from(parse(text)), map! {"/srv" => srv}.into());
        assert_eq!(short_type("default:group") + &short_type("user") + &short_type("d:u"), "d:gud:u");
    }
}
