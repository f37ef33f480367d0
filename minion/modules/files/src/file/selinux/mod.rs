//! `file`: the SELinux context of files.

use brine_context::Context;
use brine_context::programs::{run, succeeds};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_system::user_files;
use brine_value::{Value, map};

/// Execution functions of `file`.
pub static FUNCTIONS: Functions<Context> = registry!("file", [get_selinux_context, restorecon, set_selinux_context]);

/// Return the SELinux context of a file, or a message if there is none.
///
/// CLI Example:
///
///     salt '*' file.get_selinux_context /etc/hosts
#[function]
pub fn get_selinux_context(
    context: &Context,
    /// Path of the file.
    path: String,
) -> CallResult {
    let output = run(context, &["stat", "-c", "%C", "--", &path].map(str::to_owned), &[])?;
    Ok(match output.retcode {
        0 => output.stdout.into(),
        _ => format!("No selinux context information is available for {path}").into(),
    })
}

/// Reset the SELinux context of a file to that of the policy; with `recursive`, also of everything below a directory.
///
/// CLI Example:
///
///     salt '*' file.restorecon /home/user/.ssh/authorized_keys
#[function]
pub fn restorecon(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Whether everything below a directory is included.
    #[default(false)]
    recursive: bool,
) -> CallResult {
    let flags = if recursive { "-FR" } else { "-F" };
    succeeds(context, &["restorecon".to_owned(), flags.to_owned(), argument(&path)?])
}

/// Set parts of the SELinux context of a file, with `persist` also in the policy, and return the context; False if it
/// was not set.
///
/// CLI Example:
///
///     salt '*' file.set_selinux_context path type=httpd_sys_content_t
#[function]
pub fn set_selinux_context(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Name or id of the owner.
    user: Option<String>,
    /// Role of the context.
    role: Option<String>,
    /// Type of the context, such as `httpd_sys_content_t`.
    r#type: Option<String>,
    /// Range of the context, such as `s0`.
    range: Option<String>,
    /// Whether the policy gets the context, too.
    #[default(false)]
    persist: bool,
) -> CallResult {
    let parts = [("-u", &user), ("-r", &role), ("-t", &r#type), ("-l", &range)];
    let mut words = vec!["chcon".to_owned()];
    for (flag, part) in parts {
        if let Some(part) = part.as_deref().filter(|part| !part.is_empty()) {
            words.extend([flag.to_owned(), argument(part)?]);
        }
    }
    if words.len() == 1 {
        return Ok(false.into());
    }
    // chcon follows links.
    let real = user_files::real(&path).map_err(|error| super::error_at(&path, &error))?;
    words.push(argument(&real.display().to_string())?);
    if persist {
        let keyword = map! {"sel_type" => r#type, "sel_user" => user, "sel_level" => range};
        let set =
            context.call("selinux.fcontext_add_policy", Args { positional: vec![path.as_str().into()], keyword })?;
        if set.get("retcode") != Some(&0.into()) {
            return Err(CallError::Execution(format!("Problem setting fcontext: {set}")));
        }
    }
    match succeeds(context, &words)? {
        Value::Bool(true) => get_selinux_context(context, path),
        failed => Ok(failed),
    }
}

#[cfg(test)]
mod tests;
