//! `locate`: the database of file names of the program `locate`.

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::{argument, program};
use brine_value::{Map, Value};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `locate`.
pub static FUNCTIONS: Functions<Context> = registry!("locate", [version, stats, updatedb, locate]);

/// Flags of `locate` by their names.
const FLAGS: [(&str, char); 7] = [
    ("basename", 'b'),
    ("count", 'c'),
    ("existing", 'e'),
    ("follow", 'L'),
    ("ignore", 'i'),
    ("nofollow", 'P'),
    ("wholename", 'w'),
];

/// Return the version of `locate`, line by line.
///
/// CLI Example:
///
///     salt '*' locate.version
#[function]
pub fn version(context: &Context) -> CallResult {
    Ok(lines(&output(context, &["locate", "-V"])?))
}

/// Return statistics of the database: its path, and amounts by their names.
///
/// CLI Example:
///
///     salt '*' locate.stats
#[function]
pub fn stats(context: &Context) -> CallResult {
    let text = output(context, &["locate", "-S"])?;
    let amount = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (first, rest) = words.split_first()?;
        if line.starts_with("Database") {
            return Some(("database".into(), rest.first()?.replace(':', "").into()));
        }
        Some((rest.join(" ").into(), (*first).into()))
    };
    Ok(text.lines().filter_map(amount).collect::<Map>().into())
}

/// Update the database.
///
/// CLI Example:
///
///     salt '*' locate.updatedb
#[function]
pub fn updatedb(context: &Context) -> CallResult {
    Ok(lines(&output(context, &["updatedb"])?))
}

/// Return the paths of files whose names match a pattern.
///
/// CLI Example:
///
///     salt '*' locate.locate '*.conf' basename=True limit=10
#[function(name = "locate")]
pub fn locate(
    context: &Context,
    /// Pattern of the paths.
    pattern: String,
    /// Path of another database.
    #[default(String::new())]
    database: String,
    /// Most results; all by default.
    #[default(0)]
    limit: i64,
    /// Flags of `locate`: `basename`, `count`, `existing`, `follow`, `ignore` (case), `nofollow`, `wholename` and
    /// `regex`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let is_set = |name: &Value| kwargs.get(name).is_some_and(Value::is_truthy);
    let flags: String = kwargs
        .keys()
        .filter(|name| is_set(name))
        .filter_map(|name| FLAGS.iter().find(|(flag, _)| name.as_str() == Some(flag)))
        .map(|(_, flag)| *flag)
        .collect();
    let mut words = vec!["locate".to_owned()];
    words.extend((!flags.is_empty()).then(|| format!("-{flags}")));
    if !database.is_empty() {
        words.extend(["-d".to_owned(), argument(&database)?]);
    }
    if limit > 0 {
        words.extend(["-l".to_owned(), limit.to_string()]);
    }
    words.extend(is_set(&"regex".into()).then(|| "--regex".to_owned()));
    words.push(argument(&pattern)?);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(lines(&output(context, &words)?))
}

/// Runs a program, and returns its standard output and error, merged.
fn output(context: &Context, words: &[&str]) -> Result<String, CallError> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let program = brine_host::process::Program { merge: true, ..program(&words, &[]) };
    let output = context.run_program(&program).map_err(CallError::execution)?;
    context.set_retcode(output.retcode);
    Ok(output.stdout)
}

fn lines(text: &str) -> Value {
    text.lines().collect()
}

#[cfg(test)]
mod tests;
