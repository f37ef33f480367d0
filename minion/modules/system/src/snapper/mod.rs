//! `snapper`: snapshots of file systems and their configurations. Salt's module asks the service of snapper by D-Bus,
//! this one the program. `program` runs it, `changes` compares snapshots and undoes changes.

mod changes;
mod program;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

use self::program::{Snapper, configs, status_names, userdata as pairs};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `snapper`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "snapper",
    [
        list_snapshots,
        get_snapshot,
        list_configs,
        set_config,
        status_to_string,
        get_config,
        create_config,
        create_snapshot,
        delete_snapshot,
        modify_snapshot,
        create_baseline,
        changes::run,
        changes::status,
        changes::changed_files,
        changes::undo,
        changes::undo_jid,
        changes::diff,
        changes::diff_jid
    ]
);

/// Return the snapshots of a configuration.
///
/// CLI Example:
///
///     salt '*' snapper.list_snapshots config=myconfig
#[function]
pub fn list_snapshots(
    context: &Context,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
) -> CallResult {
    let snapshots = snapper(context, &config).list("Error encountered while listing snapshots")?;
    Ok(snapshots.into_iter().collect())
}

/// Return a snapshot.
///
/// CLI Example:
///
///     salt '*' snapper.get_snapshot 1
#[function]
pub fn get_snapshot(
    context: &Context,
    /// Number of the snapshot.
    #[default(0)]
    number: u32,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
) -> CallResult {
    Ok(found(context, &config, number)?.into())
}

/// Return the configurations with their settings.
///
/// CLI Example:
///
///     salt '*' snapper.list_configs
#[function]
pub fn list_configs(context: &Context) -> CallResult {
    let doing = "Error encountered while listing configurations";
    let settings = |name: String| Ok((name.as_str().into(), snapper(context, &name).settings(doing)?.into()));
    Ok(configs(context, doing)?.into_iter().map(settings).collect::<Result<Map, CallError>>()?.into())
}

/// Change settings of a configuration, given as keyword arguments, whose names are converted to upper case.
///
/// CLI Example:
///
///     salt '*' snapper.set_config SYNC_ACL=True
#[function]
pub fn set_config(
    context: &Context,
    /// Name of the configuration.
    #[default("root".into())]
    name: String,
    /// Settings by name; True and False become `yes` and `no`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut words = vec!["set-config".to_owned()];
    for (key, value) in kwargs.iter().filter(|(key, _)| !key.to_string().starts_with("__")) {
        let key = key.to_string().to_uppercase();
        let value = match value {
            Value::Bool(flag) => if *flag { "yes" } else { "no" }.to_owned(),
            other => other.to_string(),
        };
        if !key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || value.contains(char::is_control) {
            return Err(CallError::Execution(format!("{key:?} and its value {value:?} are not a setting of snapper")));
        }
        words.push(format!("{key}={value}"));
    }
    if words.len() > 1 {
        let doing = format!("Error encountered while setting configuration {name}");
        snapper(context, &name).run(&words, &doing)?;
    }
    Ok(true.into())
}

/// Return the names of the changes of a status of D-Bus.
///
/// CLI Example:
///
///     salt '*' snapper.status_to_string 24
#[function]
pub fn status_to_string(
    _context: &Context,
    /// The status, as a number.
    dbus_status: u32,
) -> CallResult {
    Ok(status_names(dbus_status))
}

/// Return the settings of a configuration.
///
/// CLI Example:
///
///     salt '*' snapper.get_config
#[function]
pub fn get_config(
    context: &Context,
    /// Name of the configuration.
    #[default("root".into())]
    name: String,
) -> CallResult {
    Ok(snapper(context, &name).settings("Error encountered while retrieving configuration")?.into())
}

/// Create a configuration, and return its settings.
///
/// CLI Example:
///
///     salt '*' snapper.create_config name=myconfig subvolume=/foo/bar/ fstype=btrfs
///     salt '*' snapper.create_config name=myconfig subvolume=/foo/bar/ fstype=btrfs extra_opts='{NUMBER_CLEANUP: False}'
#[function]
pub fn create_config(
    context: &Context,
    /// Name of the configuration.
    name: Option<String>,
    /// Path of its subvolume.
    subvolume: Option<String>,
    /// Type of the file system: `btrfs`, `lvm(...)`, `ext4`.
    fstype: Option<String>,
    /// Name of a template, `default` by default.
    template: Option<String>,
    /// Mapping of settings that replace those of the template.
    extra_opts: Option<Map>,
) -> CallResult {
    let required = |value: Option<String>, argument: &str| {
        let missing = || CallError::Execution(format!("You must provide a \"{argument}\" for the new configuration"));
        value.filter(|value| !value.is_empty()).ok_or_else(missing)
    };
    let (name, subvolume) = (required(name, "name")?, argument(&required(subvolume, "subvolume")?)?);
    let fstype = required(fstype, "fstype")?;
    let mut words = vec!["create-config", "--fstype", &fstype];
    if let Some(template) = template.as_deref().filter(|template| !template.is_empty()) {
        words.extend(["--template", template]);
    }
    words.push(&subvolume);
    snapper(context, &name).run(&words, "Error encountered while creating the new configuration")?;
    if let Some(settings) = extra_opts {
        set_config(context, name.clone(), settings)?;
    }
    get_config(context, name)
}

/// Create a snapshot, and return its number.
///
/// CLI Example:
///
///     salt '*' snapper.create_snapshot
#[function]
pub fn create_snapshot(
    context: &Context,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
    /// `single`, `pre` or `post`.
    #[default("single".into())]
    snapshot_type: String,
    /// Number of the snapshot that a `post` snapshot belongs to.
    pre_number: Option<u32>,
    /// Description; by default it names the job.
    description: Option<String>,
    /// Rule that deletes the snapshot: `number`, `timeline` or `empty-pre-post`.
    #[default("number".into())]
    cleanup_algorithm: String,
    /// Mapping of further data; the job id is added as `salt_jid`.
    userdata: Option<Map>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let new = New { kind: snapshot_type, pre: pre_number, description, cleanup: cleanup_algorithm, userdata };
    Ok(new.create(context, &config)?.into())
}

/// A snapshot to create.
struct New {
    kind: String,
    pre: Option<u32>,
    description: Option<String>,
    cleanup: String,
    userdata: Option<Map>,
}

impl New {
    /// Creates the snapshot, and returns its number.
    fn create(self, context: &Context, config: &str) -> Result<u32, CallError> {
        let jid = &context.job.jid;
        let description = self.description.unwrap_or_else(|| format!("salt job {jid}"));
        let mut userdata = self.userdata.unwrap_or_default();
        userdata.insert("salt_jid".into(), jid.as_str().into());
        let userdata = pairs(&Map::new(), &userdata)?.unwrap_or_default();
        let pre = match (&*self.kind, self.pre) {
            ("single" | "pre", _) => None,
            ("post", Some(pre)) => Some(pre.to_string()),
            ("post", None) => {
                return Err(CallError::execution(
                    "pre snapshot number 'pre_number' needs to be specified for snapshots of the 'post' type",
                ));
            }
            (other, _) => return Err(CallError::Execution(format!("Invalid snapshot type '{other}'"))),
        };
        let mut words = vec!["create", "--print-number", "--type", &self.kind, "--description", &description];
        if let Some(pre) = &pre {
            words.extend(["--pre-number", pre]);
        }
        words.extend(["--cleanup-algorithm", &self.cleanup, "--userdata", &userdata]);
        let output = snapper(context, config).run(&words, "Error encountered while creating the snapshot")?;
        let unknown =
            || CallError::Execution(format!("the output of snapper is invalid: expected a number, got {output:?}"));
        output.trim().parse().map_err(|_| unknown())
    }
}

/// Delete snapshots.
///
/// CLI Example:
///
///     salt '*' snapper.delete_snapshot 54
///     salt '*' snapper.delete_snapshot config=root snapshots_ids='[54, 55, 56]'
#[function]
pub fn delete_snapshot(
    context: &Context,
    /// Number of a snapshot, or a list of numbers.
    #[default]
    snapshots_ids: Value,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
) -> CallResult {
    let ids = match snapshots_ids {
        Value::List(ids) => ids,
        id if id.is_truthy() => vec![id],
        _ => Vec::new(),
    };
    if ids.is_empty() {
        return Err(CallError::execution("Error: No snapshot ID has been provided"));
    }
    let snapper = snapper(context, &config);
    let snapshots = snapper.list("Error encountered while listing snapshots")?;
    let is_known = |id: &Value| snapshots.iter().any(|about| about.get("id") == Some(id) && id.is_truthy());
    let unknown: Vec<String> = ids.iter().filter(|id| !is_known(id)).map(ToString::to_string).collect();
    if !unknown.is_empty() {
        return Err(CallError::Execution(format!("Error: Snapshots '{}' not found", unknown.join(", "))));
    }
    let words: Vec<String> = std::iter::once("delete".to_owned()).chain(ids.iter().map(ToString::to_string)).collect();
    snapper.run(&words, "Error encountered while deleting snapshots")?;
    Ok(map! {config.as_str() => map! {"ids" => ids, "status" => "deleted"}}.into())
}

/// Change the description, the user data or the cleanup algorithm of a snapshot, and return it.
///
/// CLI Example:
///
///     salt '*' snapper.modify_snapshot 54 description="my snapshot description"
///     salt '*' snapper.modify_snapshot 54 userdata='{foo: bar}'
#[function]
pub fn modify_snapshot(
    context: &Context,
    /// Number of the snapshot.
    snapshot_id: Option<u32>,
    /// Description of the snapshot.
    description: Option<String>,
    /// Mapping that replaces the user data.
    userdata: Option<Map>,
    /// Algorithm by which snapper removes the snapshot later.
    cleanup: Option<String>,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
) -> CallResult {
    let Some(id) = snapshot_id.filter(|id| *id != 0) else {
        return Err(CallError::execution("Error: No snapshot ID has been provided"));
    };
    let current = found(context, &config, id)?;
    let old = current.get("userdata").and_then(Value::as_map).cloned().unwrap_or_default();
    let userdata = userdata.map(|new| pairs(&old, &new)).transpose()?.flatten();
    let options = [("--description", description), ("--cleanup-algorithm", cleanup), ("--userdata", userdata)];
    let mut words = vec!["modify".to_owned()];
    for (option, value) in options {
        words.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
    }
    if words.len() > 1 {
        words.push(id.to_string());
        snapper(context, &config).run(&words, "Error encountered while modifying the snapshot")?;
    }
    Ok(found(context, &config, id)?.into())
}

/// Create a snapshot that is marked as a baseline, and return its number.
///
/// CLI Example:
///
///     salt '*' snapper.create_baseline
///     salt '*' snapper.create_baseline my_custom_baseline
#[function]
pub fn create_baseline(
    context: &Context,
    /// Tag by which the baseline is found.
    #[default("baseline".into())]
    tag: String,
    /// Name of the configuration.
    #[default("root".into())]
    config: String,
) -> CallResult {
    let new = New {
        kind: "single".into(),
        pre: None,
        description: Some("baseline snapshot".into()),
        cleanup: "number".into(),
        userdata: Some(map! {"baseline_tag" => tag}),
    };
    Ok(new.create(context, &config)?.into())
}

fn snapper<'c>(context: &'c Context, config: &'c str) -> Snapper<'c> {
    Snapper { context, config }
}

/// Returns a snapshot.
fn found(context: &Context, config: &str, number: u32) -> Result<Map, CallError> {
    let doing = "Error encountered while retrieving snapshot";
    let snapshots = snapper(context, config).list(doing)?;
    let is_it = |about: &Map| about.get("id") == Some(&number.into());
    snapshots.into_iter().find(is_it).ok_or_else(|| CallError::Execution(format!("{doing}: Invalid snapshot")))
}
