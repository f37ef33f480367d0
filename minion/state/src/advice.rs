//! What people need beside Salt's messages about SLS files and failed states: the line, and what to write.

use brine_context::Context;
use brine_function::Function;
use brine_sls::compile::Chunk;
use brine_sls::lines;
use brine_target::TargetKind;
use brine_text::nearest::nearest;
use brine_value::{Map, Value};

use crate::result_fields::text;
use crate::source::written;

/// Parts of messages about the structure of SLS files, and what to write.
const STRUCTURE: [(&str, &str); 15] = [
    ("is not formed as a list", "the arguments of a state are a list: write a dash before each, as in '- name: value'"),
    ("Include Declaration in SLS", "the names of included SLS files are a list: write a dash before each"),
    ("needs to be formed as a list", "write a list below it, each item with a dash, as in '- require: [{pkg: nginx}]'"),
    ("is not formed as a single key dictionary", "each item of a requisite is one 'module: id', as in '- pkg: nginx'"),
    ("No function declared in state", "write module and function, such as 'file.managed:'"),
    (
        "Too many functions declared in state",
        "an argument without a value is taken for a function: write 'name: value'",
    ),
    ("has whitespace, a function with whitespace", "write a colon and a space after the name of an argument"),
    ("contains a short declaration", "remove the colon, or write arguments below it"),
    ("is not formed as a string", "quote it"),
    ("are not formed as a list (got ", "write the SLS files below the target, a dash before each, as in '- webserver'"),
    (
        "are not formatted as a dict",
        "the order is environment, target, SLS files: 'base:', then \"  'web*':\", then '    - webserver'",
    ),
    ("not to a dict", "a top file begins with an environment, such as 'base:'"),
    (
        "Recursive requisites were found",
        "each of these states waits for another one of them: remove one of the requisites",
    ),
    (
        "does not render to a dictionary",
        "an SLS file is a mapping: 'id:', then '  file.managed:', then a list of arguments",
    ),
    ("is not formatted as a dictionary", "a state is an id with a function below it: 'id:', then '  file.managed:'"),
];

/// Adds the place of each error of the structure of SLS files, and what to write.
pub(crate) fn of_structure(context: &Context, saltenv: &str, errors: Vec<String>) -> Vec<String> {
    let advised = |error: String| {
        if error.contains("\n  --> ") || error.contains("\n  hint: ") && !error.contains("Referenced state") {
            return error;
        }
        let place = place(context, saltenv, &error).unwrap_or_default();
        let hint = STRUCTURE.iter().rev().find(|(part, _)| error.contains(part)).map(|(_, hint)| (*hint).to_owned());
        let hint = hint.or_else(|| of_names(context, &error));
        let hint = hint.map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
        match error.split_once("\n  hint: ") {
            Some((message, own)) => format!("{message}{place}\n  hint: {own}"),
            None if hint.is_empty() => error,
            None => format!("{error}{place}{hint}"),
        }
    };
    errors.into_iter().map(advised).collect()
}

/// Returns the names that an error is about: of environments and kinds of targets.
fn of_names(context: &Context, error: &str) -> Option<String> {
    if error.starts_with("No matching salt environment for environment '") {
        let environments = context.minion.files.environments().ok().filter(|names| !names.is_empty())?;
        return Some(format!("the file server has the environments {}", environments.join(", ")));
    }
    let (before, _) = error.split_once("' is not a target type")?;
    let kinds: Vec<&str> = TargetKind::ALL.iter().map(|kind| kind.name()).collect();
    let near =
        nearest(before.rsplit('\'').next()?, kinds.iter().copied()).map(|near| format!("did you mean '{near}'? "));
    Some(format!("{}the kinds of targets are {}", near.unwrap_or_default(), kinds.join(", ")))
}

/// Returns the line with the place that an error names: the id and the SLS.
fn place(context: &Context, saltenv: &str, error: &str) -> Option<String> {
    let after = |starts: &[&str]| {
        let tail = starts.iter().find_map(|start| error.split_once(start).map(|(_, rest)| rest))?;
        let (end, rest) = match tail.chars().next()? {
            open @ ('\'' | '"') => (open, &tail[1..]),
            '[' => (']', &tail[1..]),
            _ => (' ', tail),
        };
        rest.split(end).next().map(str::to_owned)
    };
    let sls = after(&["in SLS ", "Declaration in SLS "])?;
    let (path, text) = written(context, &sls, saltenv)?;
    let id = after(&["State ", "ID ", "in state ", "The type "]);
    let id_line = id.as_ref().and_then(|id| lines::of_id(&text, id));
    let line = match (error.contains("Include Declaration"), id) {
        (true, _) => lines::of_id(&text, "include"),
        (false, Some(id)) if error.contains("Referenced state") => referenced(&text, &id, error).or(id_line),
        _ => id_line,
    };
    Some(format!("\n  --> {path}{}", line.map(|line| format!(":{line}")).unwrap_or_default()))
}

/// Returns the line of a requisite to nothing.
fn referenced(text: &str, id: &str, error: &str) -> Option<usize> {
    let name = error.split_once(": (")?.1.split_once(")]")?.0;
    let (module, name) = name.split_once(": ")?;
    lines::of_item(text, name).or_else(|| lines::of_argument(text, id, module))
}

/// What to do about a missing directory.
const MAKE_DIRECTORIES: &str = "write 'makedirs: True', or create the directory by another state and require it";
/// Parts of the comments of failed states, the arguments that the state must have, and what to do.
const FAILURES: [(&str, &str, &str); 7] = [
    ("Parent directory not present", "makedirs", MAKE_DIRECTORIES),
    ("No directory to create", "makedirs", MAKE_DIRECTORIES),
    ("Invalid mode: ", "mode", "a mode has octal digits, from 0 to 7; quote it, as in '0644'"),
    ("Specified template format ", "template", "write a renderer of templates, such as jinja, or leave out 'template'"),
    ("for symlink is not present", "makedirs", MAKE_DIRECTORIES),
    ("is not available", "user", "a state that creates it, user.present or group.present, must be required"),
    ("The named service ", "enable", "a state that installs it, such as pkg.installed, must be required"),
];

/// Adds what to do to the comment of a failed state.
pub(crate) fn to_comment(context: &Context, chunk: &Chunk, takes: impl Fn(&str) -> bool, result: &mut Map) {
    if result.get("result") != Some(&Value::Bool(false)) {
        return;
    }
    let comment = text(result, "comment");
    let is_of_owner =
        |part: &str| part != "is not available" || comment.contains("User ") || comment.contains("Group ");
    let failure = FAILURES
        .iter()
        .rev()
        .find(|(part, argument, _)| comment.contains(part) && takes(argument) && is_of_owner(part));
    let hint = match failure {
        Some((.., hint)) => Some((*hint).to_owned()),
        None => missing_source(context, chunk, &comment).or_else(|| unknown_function(context, &comment)),
    };
    if let Some(hint) = hint.filter(|_| result.get("comment").is_some_and(|comment| comment.as_str().is_some())) {
        result.insert("comment".into(), format!("{}\n  hint: {hint}", comment.trim_end_matches('\n')).into());
    }
}

/// Returns the function that is meant by an unknown one of `module.run`.
fn unknown_function(context: &Context, comment: &str) -> Option<String> {
    let (_, names) = comment.split_once("Unavailable function")?;
    let name = names.trim_start_matches('s').trim_start_matches(": ").split([',', ' ']).next()?.trim_end_matches('.');
    let near = nearest(name, context.minion.functions.iter().map(Function::full_name))?;
    Some(format!("did you mean '{near}'?"))
}

/// Returns what to do about a source that is not on the file server.
fn missing_source(context: &Context, chunk: &Chunk, comment: &str) -> Option<String> {
    let (_, rest) = comment.split_once("Source file salt://")?;
    let (path, _) = rest.split_once(" not found in saltenv '")?;
    let saltenv = if chunk.saltenv.is_empty() { "base" } else { &chunk.saltenv };
    let files = context.minion.files.list(saltenv).unwrap_or_default();
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let near = nearest(path, files.iter().map(String::as_str))
        .map(str::to_owned)
        .or_else(|| files.iter().find(|file| name(file) == name(path)).cloned());
    let config = context.config();
    let roots = config.file_roots.get(saltenv).filter(|_| config.file_client == "local");
    let searched = match roots {
        Some(roots) => roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", "),
        None => "the files of the master".to_owned(),
    };
    let near = near.map(|near| format!("; did you mean salt://{near}?")).unwrap_or_default();
    Some(format!("{path} is not in {searched}{near}"))
}
