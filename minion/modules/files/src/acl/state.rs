//! `acl`: states of access control lists of files.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map, python};

/// State functions of `acl`.
pub static FUNCTIONS: Functions<StateContext> = registry!("acl", [present, absent, list_present, list_absent]);

/// An entry of a file.
#[derive(brine_function::Args)]
pub struct EntryArgs {
    /// Path of the file.
    name: String,
    /// Type of the entry: `user`, `group` and so on, optionally prefixed with `d:` or `default:`.
    acl_type: String,
    /// Name of the user or group.
    #[default]
    acl_name: String,
    /// Permissions, such as `rwx`.
    #[default]
    perms: String,
    /// Whether the entry also applies to everything below the file.
    #[default(false)]
    recurse: bool,
}

impl EntryArgs {
    fn desired<'w>(&'w self, perms: &'w str, force: bool) -> Desired<'w> {
        let EntryArgs { name, acl_type, acl_name, recurse, .. } = self;
        Desired { name, kind: acl_type, names: std::slice::from_ref(acl_name), perms, recurse: *recurse, force }
    }
}

/// Ensure that a user or group has these permissions on a file, and with `recurse` on everything below it; with
/// `force`, a change also removes all other entries.
///
/// SLS Example:
///
///     /srv/app:
///       acl.present:
///         - acl_type: user
///         - acl_name: deploy
///         - perms: rwx
///         - recurse: True
#[function]
pub fn present(
    context: &StateContext,
    #[args] entry: EntryArgs,
    /// Whether a change also removes all other entries.
    #[default(false)]
    force: bool,
) -> CallResult {
    let report = Labels { names: entry.acl_name.clone(), one: entry.acl_name.clone() };
    present_state(context, &entry.desired(&entry.perms, force), &report)
}

/// Ensure that a user or group has no entry of its own for a file.
///
/// SLS Example:
///
///     /srv/app:
///       acl.absent:
///         - acl_type: user
///         - acl_name: deploy
#[function]
pub fn absent(context: &StateContext, #[args] entry: EntryArgs) -> CallResult {
    absent_state(context, &entry.desired("", false))
}

/// Ensure that several users or groups have these permissions, as `present`.
///
/// SLS Example:
///
///     /srv/app:
///       acl.list_present:
///         - acl_type: user
///         - acl_names:
///           - alice
///           - bob
///         - perms: rx
#[function]
pub fn list_present(
    context: &StateContext,
    /// Path of the file or directory.
    name: String,
    /// `user` or `group`; with the prefix `d:` or `default:` the default entries of a directory.
    acl_type: String,
    /// Names of users or groups, as a list or with commas.
    #[default]
    acl_names: Vec<String>,
    /// Permissions, such as `rwx`.
    #[default]
    perms: String,
    /// Whether everything below a directory is managed, too.
    #[default(false)]
    recurse: bool,
    /// Whether a change also removes all other entries.
    #[default(false)]
    force: bool,
) -> CallResult {
    let all: Value = acl_names.iter().map(String::as_str).collect();
    let report = Labels { names: python::repr(&all), one: acl_names.join(", ") };
    let kind = acl_type.as_str();
    present_state(context, &Desired { name: &name, kind, names: &acl_names, perms: &perms, recurse, force }, &report)
}

/// Ensure that several users or groups have no entries of their own, as `absent`.
///
/// SLS Example:
///
///     /srv/app:
///       acl.list_absent:
///         - acl_type: user
///         - acl_names:
///           - alice
///           - bob
#[function]
pub fn list_absent(
    context: &StateContext,
    /// Path of the file or directory.
    name: String,
    /// `user` or `group`; with the prefix `d:` or `default:` the default entries of a directory.
    acl_type: String,
    /// Names of users or groups, as a list or with commas.
    #[default]
    acl_names: Vec<String>,
    /// Whether everything below a directory is managed, too.
    #[default(false)]
    recurse: bool,
) -> CallResult {
    absent_state(
        context,
        &Desired { name: &name, kind: &acl_type, names: &acl_names, perms: "", recurse, force: false },
    )
}

/// Desired entries of a file.
struct Desired<'w> {
    name: &'w str,
    /// `user`, `group` and so on, optionally prefixed with `d:` or `default:`.
    kind: &'w str,
    names: &'w [String],
    perms: &'w str,
    recurse: bool,
    force: bool,
}

/// The names as they are reported: `names` in comments, `one` in changes and in the comment on an applied new entry.
struct Labels {
    names: String,
    one: String,
}

/// Current entries of one type: by file, the permissions of each name as an integer.
type Entries = Vec<(String, Vec<(String, i64)>)>;

impl Desired<'_> {
    /// Returns the type without its `default` prefix, and whether it had one.
    fn plain_kind(&self) -> (&str, bool) {
        match self.kind.split_once(':') {
            Some(("d" | "default", kind)) => (kind, true),
            _ => (self.kind, false),
        }
    }

    /// Returns the entries of each file, the named file first; `None` if that file has no entry of this type.
    fn entries(&self, context: &StateContext) -> Result<Option<Entries>, CallError> {
        let args = Args { positional: vec![self.name.into()], keyword: map! {"recursive" => self.recurse} };
        let all = context.call.call("acl.getfacl", args)?;
        let (kind, is_default) = self.plain_kind();
        let of = |file: &Value| -> Option<Vec<(String, i64)>> {
            let place = if is_default { file.get("defaults")? } else { file };
            let entries = place.get(kind)?.as_list()?.iter().filter_map(Value::as_map).flatten();
            Some(
                entries
                    .map(|(name, what)| (name.to_string(), what.get("octal").and_then(Value::as_i64).unwrap_or(0)))
                    .collect(),
            )
        };
        let Some(own) = all.get(self.name) else { return Ok(None) };
        let mine = of(own).unwrap_or_default();
        if mine.is_empty() && !is_default {
            return Ok(None);
        }
        let mut entries = vec![(self.name.to_owned(), mine)];
        for (path, file) in all.as_map().into_iter().flatten() {
            let path = path.to_string();
            // Default entries apply to directories only.
            if path != self.name && (!is_default || Path::new(&path).is_dir()) {
                entries.push((path, of(file).unwrap_or_default()));
            }
        }
        Ok(Some(entries))
    }

    /// Returns the name under which `getfacl` lists an entry; an empty name stands for the owner.
    fn listed_as(&self, context: &StateContext, name: &str) -> Result<String, CallError> {
        if !name.is_empty() {
            return Ok(name.to_owned());
        }
        let all = context.call.call("acl.getfacl", Args::positional([self.name.into()]))?;
        let key = if self.plain_kind().0 == "user" { "owner" } else { self.plain_kind().0 };
        let owner = all.get(self.name).and_then(|file| file.get("comment")?.get(key));
        Ok(owner.map(ToString::to_string).unwrap_or_default())
    }

    /// Whether the current permissions are the desired ones. With `recurse`, `X` grants execution on directories and
    /// executables only, so its absence is accepted.
    fn is_granted(&self, have: i64) -> bool {
        let desired = octal(self.perms);
        have == desired || (self.recurse && self.perms.ends_with('X') && have + 1 == desired)
    }

    fn change(&self, context: &StateContext, function: &str, what: Vec<Value>) -> Result<(), CallError> {
        let positional = what.into_iter().chain([self.name.into()]).collect();
        let keyword = map! {"recursive" => self.recurse, "raise_err" => true};
        context.call.call(&format!("acl.{function}"), Args { positional, keyword }).map(drop)
    }
}

fn octal(perms: &str) -> i64 {
    let bit = |letter| match letter {
        'r' => 4,
        'w' => 2,
        'x' | 'X' => 1,
        digit => digit.to_digit(8).map_or(0, i64::from),
    };
    perms.chars().map(bit).sum()
}

fn letters(octal: i64) -> String {
    [(4, 'r'), (2, 'w'), (1, 'x')].iter().map(|(bit, letter)| if octal & bit == 0 { '-' } else { *letter }).collect()
}

fn missing_file(name: &str) -> Option<Value> {
    (!Path::new(name).exists()).then(|| StateReturn::failed(name, format!("{name} does not exist")).into())
}

fn present_state(context: &StateContext, desired: &Desired<'_>, labels: &Labels) -> Result<Value, CallError> {
    let name = desired.name;
    if let Some(failed) = missing_file(name) {
        return Ok(failed);
    }
    let Some(entries) = desired.entries(context)? else {
        return Ok(StateReturn::failed(name, "ACL Type does not exist").into());
    };
    // Find the first name whose permissions differ, and whether any name has no entry.
    let (mut other, mut is_new) = (None, false);
    for acl_name in desired.names {
        let listed = desired.listed_as(context, acl_name)?;
        let of = |have: &[(String, i64)]| have.iter().find(|(name, _)| *name == listed).map(|(_, octal)| *octal);
        let own = entries.first().and_then(|(_, have)| of(have));
        is_new |= own.is_none();
        let is_good = |have: &[(String, i64)]| of(have).is_some_and(|have| desired.is_granted(have));
        if !entries.iter().all(|(_, have)| is_good(have)) {
            other = other.or(own);
        }
    }
    let perms = desired.perms;
    let entry = |perms: &str| map! {"acl_name" => &labels.one, "acl_type" => desired.kind, "perms" => perms};
    let mut changes = map! {"new" => entry(perms)};
    let (would, comment) = match (is_new, other) {
        (false, None) => return Ok(StateReturn::ok(name, "Permissions are in the desired state").into()),
        (true, _) => (
            format!("New permissions will be applied for {}: {perms}", labels.names),
            format!("Applied new permissions for {}", labels.one),
        ),
        (false, Some(old)) => {
            let old = letters(old);
            changes.insert("old".into(), entry(&old).into());
            (
                format!("Updated permissions will be applied for {}: {old} -> {perms}", labels.names),
                format!("Updated permissions for {}", labels.names),
            )
        }
    };
    if context.test {
        return Ok(StateReturn::predicted(name, would).with_changes(changes).into());
    }
    let grant = || {
        if desired.force {
            desired.change(context, "wipefacls", Vec::new())?;
        }
        desired.names.iter().try_for_each(|acl_name| {
            desired.change(context, "modfacl", vec![desired.kind.into(), acl_name.into(), perms.into()])
        })
    };
    Ok(match grant() {
        Ok(()) => StateReturn::ok(name, comment).with_changes(changes).into(),
        Err(CallError::Execution(error)) => {
            StateReturn::failed(name, format!("Error updating permissions for {}: {error}", labels.names)).into()
        }
        Err(error) => return Err(error),
    })
}

fn absent_state(context: &StateContext, desired: &Desired<'_>) -> Result<Value, CallError> {
    let name = desired.name;
    if let Some(failed) = missing_file(name) {
        return Ok(failed);
    }
    let Some(entries) = desired.entries(context)? else {
        return Ok(StateReturn::failed(name, "ACL Type does not exist").into());
    };
    let mut there = Vec::new();
    for acl_name in desired.names {
        let listed = desired.listed_as(context, acl_name)?;
        if entries.iter().any(|(_, have)| have.iter().any(|(name, _)| *name == listed)) {
            there.push(acl_name);
        }
    }
    if there.is_empty() {
        return Ok(StateReturn::ok(name, "Permissions are in the desired state").into());
    }
    if context.test {
        return Ok(StateReturn::predicted(name, "Removing permissions").into());
    }
    for acl_name in there {
        desired.change(context, "delfacl", vec![desired.kind.into(), acl_name.into()])?;
    }
    Ok(StateReturn::ok(name, "Removing permissions").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_numbers_and_letters() {
        for (perms, number, labels) in [("rwx", 7, "rwx"), ("r-X", 5, "r-x"), ("", 0, "---"), ("6", 6, "rw-")] {
            assert_eq!((octal(perms), letters(octal(perms)).as_str()), (number, labels), "{perms}");
        }
    }
}
