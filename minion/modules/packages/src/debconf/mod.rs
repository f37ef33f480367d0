//! `debconf`: answers to questions of Debian packages.

pub(crate) mod state;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::which;
use brine_value::{Map, Value, list, map};

use brine_modules_files::cmd::{CommandArgs, Scratch, script_content};

pub(super) static MODULE: Module =
    Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], unavailable: Some(unavailable), ..Module::EMPTY };

fn unavailable(context: &Context) -> Option<String> {
    if context.os_family() != "Debian" {
        return Some("debconf state only runs on Debian systems".into());
    }
    which("debconf-get-selections").is_none().then(|| "debconf module could not be loaded".into())
}

/// Execution functions of `debconf`.
pub static FUNCTIONS: Functions<Context> = registry!("debconf", [get_selections, show, set, set_file, set_template]);

/// Return all answers by package, each a list of question, type and answer.
///
/// CLI Example:
///
///     salt '*' debconf.get_selections
#[function]
pub fn get_selections(
    context: &Context,
    /// Whether questions without an answer are listed, too.
    #[default(true)]
    fetchempty: bool,
) -> CallResult {
    let output = run(context, &["debconf-get-selections".into()], &[])?;
    Ok(parse(&output.stdout, fetchempty).into())
}

/// Return the answers to the questions of a package; nothing if there are none.
///
/// CLI Example:
///
///     salt '*' debconf.show <package name>
#[function]
pub fn show(
    context: &Context,
    /// Name of the package.
    name: String,
) -> CallResult {
    let all = get_selections(context, true)?;
    Ok(all.get(&name).cloned().unwrap_or_default())
}

/// Answer a question of a package.
///
/// CLI Example:
///
///     salt '*' debconf.set <package> <question> <type> <value> [<value> ...]
#[function]
pub fn set(
    context: &Context,
    /// Name of the package.
    package: String,
    /// Name of the question.
    question: String,
    /// Type of the question, such as `string` or `boolean`.
    r#type: String,
    /// Answer.
    value: Value,
    /// Further words of the answer, joined with blanks.
    #[rest]
    extra: Vec<Value>,
) -> CallResult {
    let value: Vec<String> = [value].iter().chain(&extra).map(ToString::to_string).collect();
    let line = format!("{package} {question} {} {}\n", r#type, value.join(" "));
    answer(context, line.as_bytes())
}

/// Answer questions from a file of the file server or of this host.
///
/// CLI Example:
///
///     salt '*' debconf.set_file salt://pathto/pkg.selections
#[function]
pub fn set_file(
    context: &Context,
    /// URL or path of the file.
    path: String,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    match script_content(context, &path, &saltenv, &CommandArgs::read(&Map::new())?)? {
        Some(content) => answer(context, &content),
        None => Ok(false.into()),
    }
}

/// Answer questions from a file that is rendered first, as `set_file`.
///
/// CLI Example:
///
///     salt '*' debconf.set_template salt://pathto/pkg.selections.jinja jinja None None
#[function]
pub fn set_template(
    call: &Context,
    /// URL or path of the file.
    path: String,
    /// Template engine that renders the file, such as `jinja`.
    template: String,
    /// Variables of the template.
    context: Option<Map>,
    /// Variables of the template, below those of `context`.
    defaults: Option<Map>,
    /// Environment of the file server.
    #[default("base".into())]
    saltenv: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let all: Map = defaults.unwrap_or_default().into_iter().chain(context.unwrap_or_default()).collect();
    match script_content(call, &path, &saltenv, &CommandArgs::read(&map! {"template" => template, "context" => all})?)?
    {
        Some(content) => answer(call, &content),
        None => Ok(false.into()),
    }
}

fn parse(text: &str, with_empty: bool) -> Map {
    let mut answers_by_package = Map::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.splitn(4, ['\t', ' ']);
        let (Some(package), Some(question), Some(kind)) = (words.next(), words.next(), words.next()) else { continue };
        let value = words.next().unwrap_or_default().trim_start();
        if value.is_empty() && !with_empty {
            continue;
        }
        let answers = answers_by_package.entry(package.into()).or_insert_with(|| list![]);
        if let Value::List(answers) = answers {
            answers.push(list![question, kind, value]);
        }
    }
    answers_by_package
}

/// Passes answers to `debconf-set-selections`. They may contain passwords, so only root can read the file.
fn answer(context: &Context, text: &[u8]) -> Result<Value, CallError> {
    let file = Scratch::new(text, None)?;
    let words = ["debconf-set-selections".to_owned(), file.path().display().to_string()];
    let output = run(context, &words, &[])?;
    if output.retcode == 0 {
        return Ok(true.into());
    }
    context.set_retcode(output.retcode);
    tracing::error!(jid = context.job.jid, "{}", output.stderr);
    Ok(false.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_parsed() {
        let text = "# a comment\npkg\tpkg/a\tstring\tone two\npkg\tpkg/b\tstring\t\nother other/c boolean true\nbad\n";
        let (a, b) = (list!["pkg/a", "string", "one two"], list!["pkg/b", "string", ""]);
        assert_eq!(parse(text, true).get("pkg"), Some(&list![a.clone(), b]));
        assert_eq!(parse(text, false).get("pkg"), Some(&list![a]));
        assert_eq!(parse(text, true).len(), 2);
    }
}
