//! Attributes of files on their file system: `lsattr` and `chattr`.

use std::path::Path;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::paths::expand;
use brine_value::{Map, Value, map};

/// The attributes that can be changed.
const FLAGS: &str = "aAcCdDeijPsStTu";

/// Execution functions of `file`.
pub static FUNCTIONS: Functions<Context> = registry!("file", [lsattr, chattr]);

/// Return the attributes of a file or of a directory's files, by path. Returns nothing if this host has no
/// `lsattr`.
///
/// CLI Example:
///
///     salt '*' file.lsattr /etc/resolv.conf
#[function]
pub fn lsattr(
    context: &Context,
    /// Path of the file.
    path: String,
) -> CallResult {
    if context.minion.programs.find("lsattr").is_none() {
        return Ok(Value::Nil);
    }
    let file = expand(&path);
    if !file.exists() {
        return Err(CallError::Execution(format!("File or directory does not exist: {path}")));
    }
    Ok(listed(context, &file)?.into())
}

/// Add attributes to files or remove them; `operator` is `add` or `remove`.
///
/// CLI Example:
///
///     salt '*' file.chattr /etc/resolv.conf operator=add attributes=i
#[function]
pub fn chattr(
    context: &Context,
    /// Paths of files.
    #[rest]
    args: Vec<Value>,
    /// `operator` (`add` or `remove`) and `attributes` (letters of `chattr`), both required; `flags`, further flags of
    /// `chattr`; `version`, the version of the files.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let text = |name: &str| kwargs.get(name).filter(|value| !value.is_nil()).map(ToString::to_string);
    let sign = match text("operator").as_deref() {
        Some("add") => '+',
        Some("remove") => '-',
        _ => return Err(CallError::Execution("Need an operator: 'add' or 'remove' to modify attributes.".into())),
    };
    let flags = text("attributes").ok_or_else(|| CallError::Execution(format!("Need attributes: [{FLAGS}]")))?;
    let mut words = vec!["chattr".to_owned(), format!("{sign}{flags}")];
    words.extend(text("flags").map(|flags| format!("-{flags}")));
    words.extend(text("version").into_iter().flat_map(|version| ["-v".to_owned(), version]));
    words.push("--".into());
    words.extend(args.iter().map(|path| expand(&path.to_string()).display().to_string()));
    let output = run(context, &words, &[])?;
    Ok((output.stdout.is_empty() && output.stderr.is_empty()).into())
}

fn listed(context: &Context, file: &Path) -> Result<Map, CallError> {
    let output = run(context, &["lsattr".into(), "--".into(), file.display().to_string()], &[])?;
    let line = |line: &str| {
        let (flags, path) = line.split_once(char::is_whitespace)?;
        let flags: Value = flags.chars().filter(|flag| FLAGS.contains(*flag)).map(|flag| flag.to_string()).collect();
        Some((path.trim_start().into(), flags))
    };
    Ok(output.stdout.lines().filter(|line| !line.starts_with("lsattr: ")).filter_map(line).collect())
}

/// A change of a file's attributes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    old: String,
    desired: String,
    added: String,
    removed: String,
}

impl Change {
    fn new(old: String, desired: &str) -> Option<Self> {
        let added: String = desired.chars().filter(|flag| !old.contains(*flag)).collect();
        // The extents attribute cannot be removed.
        let removed: String = old.chars().filter(|flag| *flag != 'e' && !desired.contains(*flag)).collect();
        (!added.is_empty() || !removed.is_empty()).then_some(Change {
            old,
            desired: desired.to_owned(),
            added,
            removed,
        })
    }

    /// Returns `{old, new}`, as states report the change.
    pub fn to_map(&self) -> Map {
        map! {"old" => &self.old, "new" => &self.desired}
    }

    /// Applies the change.
    pub fn make(&self, context: &Context, path: &Path) -> Result<(), CallError> {
        for (sign, flags) in [('+', &self.added), ('-', &self.removed)] {
            if flags.is_empty() {
                continue;
            }
            let output = run(
                context,
                &["chattr".into(), format!("{sign}{flags}"), "--".into(), path.display().to_string()],
                &[],
            )?;
            if output.retcode != 0 {
                let message = format!("Failed to change attributes to {}: {}", self.desired, output.stderr.trim());
                return Err(CallError::Execution(message));
            }
        }
        Ok(())
    }
}

/// Returns the change that gives a file these attributes; `None` if it has them, or if the host or its file system
/// has no attributes.
pub(crate) fn change(context: &Context, path: &Path, desired: &str) -> Result<Option<Change>, CallError> {
    if path.is_dir() || context.minion.programs.find("lsattr").is_none() {
        return Ok(None);
    }
    let listed = listed(context, path)?;
    let Some(flags) = listed.values().next().and_then(Value::as_list) else { return Ok(None) };
    Ok(Change::new(flags.iter().map(ToString::to_string).collect(), desired))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_change_to_the_desired_ones() {
        for (old, desired, changes) in [
            ("e", "d", Some(("d", ""))),
            ("de", "d", None),
            ("aie", "i", Some(("", "a"))),
            ("", "", None),
            ("Ae", "id", Some(("id", "A"))),
        ] {
            let change = Change::new(old.to_owned(), desired);
            let actual = change.as_ref().map(|change| (change.added.as_str(), change.removed.as_str()));
            assert_eq!(actual, changes, "{old} {desired}");
        }
    }
}
