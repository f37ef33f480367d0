//! `pam`: the rules of PAM services.

use std::path::Path;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_value::{Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `pam`.
pub static FUNCTIONS: Functions<Context> = registry!("pam", [read_file]);

/// Return the rules of a file: `interface`, `control_flag`, `module` and `arguments` of each; `False` if there is no
/// such file. The interface of an `@include` line is that word, and its control flag is the included file.
///
/// CLI Example:
///
///     salt '*' pam.read_file /etc/pam.d/login
#[function]
pub fn read_file(
    _context: &Context,
    /// Path of the file, such as `/etc/pam.d/login`.
    file_name: String,
) -> CallResult {
    let text = files::read_if_exists(Path::new(&file_name)).map_err(CallError::execution)?;
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(false.into()) };
    Ok(text.lines().filter(|line| !line.starts_with('#')).filter_map(rule).collect())
}

fn rule(line: &str) -> Option<Value> {
    let (interface, rest) = split(line.trim())?;
    let (control, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((control, rest)) => (control.split_whitespace().collect::<Vec<_>>().join(" "), rest.trim_start()),
        None => split(rest).map(|(control, rest)| (control.to_owned(), rest))?,
    };
    let (module, arguments) = split(rest).unwrap_or_default();
    let arguments: Value = arguments.split_whitespace().collect();
    Some(
        map! {"interface" => interface, "control_flag" => control, "module" => module, "arguments" => arguments}.into(),
    )
}

/// Splits the first word off; `None` if there is none.
fn split(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (!word.is_empty()).then(|| (word, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use brine_value::json::to_json;

    use super::*;
    use crate::testing::context;

    #[test]
    fn rules_have_controls_modules_and_arguments() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "# comment\n\nauth       optional   pam_faildelay.so  delay=3000000\n\
            auth [success=ok new_authtok_reqd=ok ignore=ignore user_unknown=bad default=die] pam_securetty.so\n\
            auth\t[default=die]\tpam_deny.so a b\n@include common-auth\nalone\n";
        std::fs::write(file.path(), text).unwrap();
        let read = |name: &str| read_file(&context(&[]), name.to_owned()).unwrap();
        insta::assert_snapshot!(to_json(&read(&file.path().to_string_lossy())), @r#"[{"interface": "auth", "control_flag": "optional", "module": "pam_faildelay.so", "arguments": ["delay=3000000"]}, {"interface": "auth", "control_flag": "success=ok new_authtok_reqd=ok ignore=ignore user_unknown=bad default=die", "module": "pam_securetty.so", "arguments": []}, {"interface": "auth", "control_flag": "default=die", "module": "pam_deny.so", "arguments": ["a", "b"]}, {"interface": "@include", "control_flag": "common-auth", "module": "", "arguments": []}]"#);
        assert_eq!(read("/nowhere"), false.into());
    }
}
