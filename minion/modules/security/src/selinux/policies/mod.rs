//! `selinux`: the contexts of files, and the types of ports.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

use super::{listed, words};

/// Execution functions of `selinux`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "selinux",
    [
        filetype_id_to_string,
        fcontext_get_policy,
        fcontext_add_policy,
        fcontext_delete_policy,
        fcontext_policy_is_applied,
        fcontext_apply_policy,
        port_get_policy,
        port_add_policy,
        port_modify_policy,
        port_delete_policy
    ]
);

/// The types of files: their letters, and their names in semanage's output.
const FILE_TYPES: &[(&str, &str)] = &[
    ("a", "all files"),
    ("f", "regular file"),
    ("d", "directory"),
    ("c", "character device"),
    ("b", "block device"),
    ("s", "socket"),
    ("l", "symbolic link"),
    ("p", "named pipe"),
];

/// Return the name of a type of files: `a`, `f`, `d`, `c`, `b`, `s`, `l` or `p`.
///
/// CLI Example:
///
///     salt '*' selinux.filetype_id_to_string d
#[function]
pub fn filetype_id_to_string(
    _context: &Context,
    /// Letter of the type of files, such as `f`.
    #[default("a".into())]
    filetype: String,
) -> CallResult {
    Ok(described(&filetype)?.into())
}

/// The arguments that describe the context of files.
#[derive(Args)]
pub struct FileContextArgs {
    /// File specification: a regular expression of paths.
    name: String,
    /// Letter of the type of files: `a`, `f`, `d`, `c`, `b`, `s`, `l` or `p`.
    filetype: Option<String>,
    /// Type of the context.
    sel_type: Option<String>,
    /// User of the context.
    sel_user: Option<String>,
    /// Level of the context.
    sel_level: Option<String>,
}

impl FileContextArgs {
    fn change(self, context: &Context, action: &str) -> CallResult {
        let mut command = words(&["semanage", "fcontext", action]);
        if let Some(kind) = self.filetype.filter(|kind| !kind.is_empty() && kind != "a") {
            described(&kind)?;
            command.extend(["--ftype".to_owned(), kind]);
        }
        let options = [("--type", self.sel_type), ("--seuser", self.sel_user), ("--range", self.sel_level)];
        push(&mut command, &options)?;
        command.push(argument(&self.name)?);
        Ok(run_all(context, &command)?.into())
    }
}

/// Return the context that a file specification gives to files, or nothing. The other arguments must match, too, if
/// they are given.
///
/// CLI Example:
///
///     salt '*' selinux.fcontext_get_policy my-policy
#[function]
pub fn fcontext_get_policy(context: &Context, #[args] args: FileContextArgs) -> CallResult {
    let FileContextArgs { name, filetype, sel_type, sel_user, sel_level } = args;
    let kind = filetype.filter(|kind| !kind.is_empty()).map(|kind| described(&kind)).transpose()?;
    let fits = |entry: &Map| {
        let is = |key: &str, expected: Option<&str>| {
            let value = entry.get(key).map(ToString::to_string);
            expected.is_none_or(|expected| expected.is_empty() || value.as_deref() == Some(expected))
        };
        is("filespec", Some(&name))
            && is("filetype", kind)
            && is("sel_type", sel_type.as_deref())
            && is("sel_user", sel_user.as_deref())
            && is("sel_level", sel_level.as_deref())
    };
    let output = listed(context, &["semanage", "fcontext", "--list"])?;
    Ok(output.lines().filter_map(file_entry).find(fits).map_or(Value::Nil, Value::from))
}

/// Add or change the context that a file specification gives to files, and return the result of the program.
///
/// CLI Example:
///
///     salt '*' selinux.fcontext_add_policy '/srv/web(/.*)?' filetype=a sel_type=httpd_sys_content_t
#[function]
pub fn fcontext_add_policy(context: &Context, #[args] args: FileContextArgs) -> CallResult {
    // semanage can only modify an existing entry, not add it again.
    let output = listed(context, &["semanage", "fcontext", "--list"])?;
    let is_there =
        output.lines().filter_map(file_entry).any(|entry| entry.get("filespec") == Some(&args.name.as_str().into()));
    let action = if is_there { "--modify" } else { "--add" };
    args.change(context, action)
}

/// Delete the context that a file specification gives to files, and return the result of the program.
///
/// CLI Example:
///
///     salt '*' selinux.fcontext_delete_policy my-policy
#[function]
pub fn fcontext_delete_policy(context: &Context, #[args] args: FileContextArgs) -> CallResult {
    args.change(context, "--delete")
}

/// Return the changes that would give files the contexts of the policy; an empty string if they have them.
///
/// CLI Example:
///
///     salt '*' selinux.fcontext_policy_is_applied my-policy
#[function]
pub fn fcontext_policy_is_applied(
    context: &Context,
    /// Path of the file or directory.
    name: String,
    /// Whether everything below a directory is included.
    #[default(false)]
    recursive: bool,
) -> CallResult {
    Ok(run(context, &restorecon(&["-n", "-v"], &name, recursive)?, &[("LC_ALL", "C")])?.stdout.into())
}

/// Give files the contexts of the policy, and return the result of the program, with the changes.
///
/// CLI Example:
///
///     salt '*' selinux.fcontext_apply_policy my-policy
#[function]
pub fn fcontext_apply_policy(
    context: &Context,
    /// Path of the file or directory.
    name: String,
    /// Whether everything below a directory is included.
    #[default(false)]
    recursive: bool,
) -> CallResult {
    let planned = fcontext_policy_is_applied(context, name.clone(), recursive)?.to_string();
    let mut report = run_all(context, &restorecon(&["-v", "-F"], &name, recursive)?)?;
    if report.get("retcode") == Some(&0.into()) {
        let changes: Map = planned.lines().filter_map(parse_relabel).collect();
        if changes.is_empty() {
            report.insert("retcode".into(), 1.into());
            report.insert("error".into(), "Unrecognized response from restorecon command.".into());
        } else {
            report.insert("changes".into(), changes.into());
        }
    }
    Ok(report.into())
}

/// Return the type of a port, such as `tcp/8080`, or nothing; with `sel_type`, only if it has this type.
///
/// CLI Example:
///
///     salt '*' selinux.port_get_policy tcp/80
///     salt '*' selinux.port_get_policy foobar protocol=tcp port=80
#[function]
pub fn port_get_policy(
    context: &Context,
    /// Protocol and port, such as `tcp/8080`.
    name: String,
    /// Type of the port.
    sel_type: Option<String>,
    /// Protocol: `tcp` or `udp`.
    protocol: Option<String>,
    /// Port, or range of ports.
    port: Option<Value>,
) -> CallResult {
    let (protocol, port) = protocol_and_port(&name, protocol.as_deref(), port.as_ref())?;
    let row = |line: &str| {
        let mut words = line.splitn(2, char::is_whitespace);
        let kind = words.next()?;
        let (proto, ports) = words.next()?.trim().split_once(char::is_whitespace)?;
        let has = ports.split(',').any(|one| one.trim() == port);
        let fits = proto == protocol
            && has
            && sel_type.as_deref().is_none_or(|expected| expected.is_empty() || expected == kind);
        fits.then(|| map! {"sel_type" => kind, "protocol" => proto, "port" => ports.trim()})
    };
    let output = listed(context, &["semanage", "port", "--list"])?;
    Ok(output.lines().find_map(row).map_or(Value::Nil, Value::from))
}

/// The arguments that describe the type of a port.
#[derive(Args)]
pub struct PortArgs {
    /// Protocol and port, such as `tcp/8080`.
    name: String,
    /// Type of the port.
    sel_type: Option<String>,
    /// Protocol, if it is not part of the name.
    protocol: Option<String>,
    /// Port, if it is not part of the name.
    port: Option<Value>,
    /// Range of levels.
    sel_range: Option<String>,
}

impl PortArgs {
    fn change(self, context: &Context, action: &str) -> CallResult {
        let target = protocol_and_port(&self.name, self.protocol.as_deref(), self.port.as_ref())?;
        change_port(context, action, target, self.sel_type, self.sel_range)
    }
}

/// Add a type to a port, such as `tcp/8080`, and return the result of the program.
///
/// CLI Example:
///
///     salt '*' selinux.port_add_policy tcp/8080 http_port_t
#[function]
pub fn port_add_policy(context: &Context, #[args] port: PortArgs) -> CallResult {
    if port.sel_type.as_ref().is_none_or(String::is_empty) {
        return Err(CallError::Execution("SELinux Type is required to add a policy".into()));
    }
    port.change(context, "--add")
}

/// Change the type of a port, such as `tcp/8080`, and return the result of the program.
///
/// CLI Example:
///
///     salt '*' selinux.port_modify_policy tcp/8080 http_port_t
#[function]
pub fn port_modify_policy(context: &Context, #[args] port: PortArgs) -> CallResult {
    port.change(context, "--modify")
}

/// Delete the type of a port, such as `tcp/8080`, and return the result of the program.
///
/// CLI Example:
///
///     salt '*' selinux.port_delete_policy tcp/8080
#[function]
pub fn port_delete_policy(
    context: &Context,
    /// Protocol and port, such as `tcp/8080`.
    name: String,
    /// Protocol: `tcp` or `udp`.
    protocol: Option<String>,
    /// Port, or range of ports.
    port: Option<Value>,
) -> CallResult {
    let target = protocol_and_port(&name, protocol.as_deref(), port.as_ref())?;
    change_port(context, "--delete", target, None, None)
}

/// Returns the description of a type of files.
pub(super) fn described(code: &str) -> Result<&'static str, CallError> {
    let description = FILE_TYPES.iter().find(|(letter, _)| *letter == code).map(|(_, description)| *description);
    let letters = || FILE_TYPES.iter().map(|(letter, _)| *letter).collect::<Vec<_>>().join(", ");
    description
        .ok_or_else(|| CallError::Execution(format!("Invalid file type code '{code}'; expected one of: {}", letters())))
}

/// Runs a program, and returns `pid`, `retcode`, `stdout` and `stderr`.
fn run_all(context: &Context, words: &[String]) -> Result<Map, CallError> {
    let output = run(context, words, &[("LC_ALL", "C")])?;
    Ok(map! {
        "pid" => output.pid, "retcode" => output.retcode, "stdout" => output.stdout, "stderr" => output.stderr,
    })
}

fn push(command: &mut Vec<String>, options: &[(&str, Option<String>)]) -> Result<(), CallError> {
    for (flag, value) in options {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            command.extend([(*flag).to_owned(), argument(value)?]);
        }
    }
    Ok(())
}

fn change_port(
    context: &Context,
    action: &str,
    (protocol, port): (String, String),
    sel_type: Option<String>,
    sel_range: Option<String>,
) -> CallResult {
    let mut command = words(&["semanage", "port", action, "--proto", &protocol]);
    push(&mut command, &[("--type", sel_type), ("--range", sel_range)])?;
    command.push(port);
    Ok(run_all(context, &command)?.into())
}

fn restorecon(flags: &[&str], name: &str, recursive: bool) -> Result<Vec<String>, CallError> {
    let mut command = words(&["restorecon"]);
    command.extend(words(flags));
    command.extend(recursive.then(|| "-R".to_owned()));
    command.push(argument(name)?);
    Ok(command)
}

/// Parses `/x(/.*)?    all files    system_u:object_r:default_t:s0`.
fn file_entry(line: &str) -> Option<Map> {
    let (rest, label) = line.trim_end().rsplit_once(' ')?;
    let rest = rest.trim_end();
    let (_, kind) = FILE_TYPES.iter().find(|(_, kind)| rest.ends_with(&format!(" {kind}")))?;
    let spec = rest.strip_suffix(kind)?.trim();
    let mut entry = map! {"filespec" => spec, "filetype" => *kind};
    entry.extend(parts(label)?);
    Some(entry)
}

/// Parses `system_u:object_r:default_t:s0`; the level may have colons.
fn parts(label: &str) -> Option<Map> {
    let mut parts = label.splitn(4, ':');
    let names = ["sel_user", "sel_role", "sel_type", "sel_level"];
    names.iter().map(|name| Some(((*name).into(), parts.next()?.into()))).collect()
}

/// Parses `Would relabel /x from a:b:c:d to e:f:g:h`: the path, and the parts of the contexts that differ.
fn parse_relabel(line: &str) -> Option<(Value, Value)> {
    let (rest, before, between) = if let Some(rest) = line.strip_prefix("Would relabel ") {
        (rest, " from ", " to ")
    } else {
        (line.strip_prefix("restorecon reset ")?, " context ", "->")
    };
    let (path, labels) = rest.split_once(before)?;
    let (old, new) = labels.split_once(between)?;
    let (mut old, mut new) = (parts(old)?, parts(new)?);
    let same: Vec<Value> =
        old.iter().filter(|(key, value)| new.get(*key) == Some(*value)).map(|(key, _)| key.clone()).collect();
    for key in same {
        old.shift_remove(&key);
        new.shift_remove(&key);
    }
    Some((path.into(), map! {"old" => old, "new" => new}.into()))
}

/// Returns protocol and port of a name such as `tcp/8080` or `udp/100-200`, or of the separate arguments.
fn protocol_and_port(name: &str, protocol: Option<&str>, port: Option<&Value>) -> Result<(String, String), CallError> {
    let parsed = |text: &str| {
        let (protocol, port) = text.split_once('/')?;
        let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        let is_port = port.split_once('-').map_or(is_number(port), |(from, to)| is_number(from) && is_number(to));
        (matches!(protocol, "tcp" | "udp") && is_port).then(|| (protocol.to_owned(), port.to_owned()))
    };
    let (protocol, port) = (protocol.unwrap_or("None"), port.map_or_else(|| "None".to_owned(), ToString::to_string));
    parsed(name).or_else(|| parsed(&format!("{protocol}/{port}"))).ok_or_else(|| {
        CallError::Execution(format!(
            "Invalid name \"{name}\" format and protocol and port not provided or invalid: \"{protocol}\" \"{port}\"."
        ))
    })
}

#[cfg(test)]
mod tests;
