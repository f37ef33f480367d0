//! `raid`: states of arrays.

use std::collections::BTreeMap;
use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use super::create::devices_of;

/// State functions of `raid`.
pub static FUNCTIONS: Functions<StateContext> = registry!("raid", [present, absent]);

/// Ensure that an array exists. It is assembled if one of its devices was a member before, and created otherwise;
/// devices that are no members of an existing array are added to it.
///
/// SLS Example:
///
///     /dev/md0:
///       raid.present:
///         - level: 1
///         - devices:
///           - /dev/vdb
///           - /dev/vdc
///         - chunk: 256
///         - run: True
#[function]
pub fn present(
    context: &StateContext,
    /// The device of the array.
    name: String,
    /// The RAID level.
    level: String,
    /// The devices; `missing` stands for one that is added later.
    devices: Value,
    /// Options of `mdadm`, such as `chunk` or `run`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let array = Array { context, name, level, kwargs };
    let devices = Devices::examine(context, &devices_of(&devices)?)?;
    let current = array.find()?;
    let members = match devices.check(current.as_ref()) {
        Ok(members) => members,
        Err(comment) => return Ok(StateReturn::failed(&array.name, comment).into()),
    };
    let operation = match (&current, members.is_empty()) {
        (Some(_), _) => None,
        (None, false) => Some(Operation::Assemble),
        (None, true) if devices.new.is_empty() => {
            let comment = format!("All devices are missing: {}.", shown(&devices.missing));
            return Ok(StateReturn::failed(&array.name, comment).into());
        }
        (None, true) => Some(Operation::Create),
    };
    let mut report = if context.test {
        array.predict(operation, &devices, members)
    } else {
        array.apply(operation, &devices, members)
    }?;
    if !devices.missing.is_empty() {
        report.comment += &format!(" Missing devices: {}", shown(&devices.missing));
    }
    Ok(report.into())
}

/// Ensure that an array does not exist. The data of its devices is lost.
///
/// SLS Example:
///
///     /dev/md0:
///       raid.absent: []
#[function]
pub fn absent(
    context: &StateContext,
    /// The device of the array.
    name: String,
) -> CallResult {
    if call(context, "list", [], map! {})?.get(&name).is_none() {
        return Ok(StateReturn::ok(&name, format!("Raid {name} already absent")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Raid {name} is set to be destroyed")).into());
    }
    Ok(if call(context, "destroy", [name.as_str().into()], map! {})?.is_truthy() {
        StateReturn::ok(&name, format!("Raid {name} has been destroyed"))
    } else {
        StateReturn::failed(&name, format!("Raid {name} failed to be destroyed"))
    }
    .into())
}

/// What is done about an array that is not active.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Assemble,
    Create,
}

impl Operation {
    fn past(self) -> &'static str {
        match self {
            Operation::Assemble => "assembled",
            Operation::Create => "created",
        }
    }
}

/// The desired array.
struct Array<'a> {
    context: &'a StateContext,
    name: String,
    level: String,
    kwargs: Map,
}

impl Array<'_> {
    /// Returns the array as listed by `raid.list`.
    fn find(&self) -> Result<Option<Map>, CallError> {
        let arrays = call(self.context, "list", [], map! {})?;
        Ok(arrays.get(&self.name).and_then(Value::as_map).cloned())
    }

    fn run(&self, operation: Operation, devices: &Devices, members: &[String], test_mode: bool) -> CallResult {
        let mut keyword = self.kwargs.clone();
        keyword.insert("test_mode".into(), test_mode.into());
        let name = Value::from(self.name.as_str());
        match operation {
            Operation::Assemble => call(self.context, "assemble", [name, listed(members)], keyword),
            Operation::Create => {
                let missing = devices.missing.iter().map(|_| "missing");
                let all = devices.new.iter().map(String::as_str).chain(missing).collect();
                call(self.context, "create", [name, self.level.as_str().into(), all], keyword)
            }
        }
    }

    fn predict(
        &self,
        operation: Option<Operation>,
        devices: &Devices,
        members: &[String],
    ) -> Result<StateReturn, CallError> {
        let mut report = match operation {
            None => StateReturn::ok(&self.name, format!("Raid {} already present.", self.name)),
            Some(operation) => {
                let command = self.run(operation, devices, members, true)?;
                StateReturn::predicted(&self.name, format!("Raid will be {} with: {command}", operation.past()))
            }
        };
        if operation != Some(Operation::Create) && !devices.new.is_empty() {
            report.comment += &format!(" New devices will be added: {}", shown(&devices.new));
            report.result = None;
        }
        Ok(report)
    }

    fn apply(
        &self,
        operation: Option<Operation>,
        devices: &Devices,
        members: &[String],
    ) -> Result<StateReturn, CallError> {
        let name = &self.name;
        let mut report = StateReturn::ok(name, format!("Raid {name} already present."));
        if let Some(operation) = operation {
            self.run(operation, devices, members, false)?;
            let Some(array) = self.find()? else {
                return Ok(StateReturn::failed(name, format!("Raid {name} failed to be {}.", operation.past())));
            };
            report = StateReturn::ok(name, format!("Raid {name} {}.", operation.past())).with_changes(array);
            call(self.context, "save_config", [], map! {})?;
        }
        if operation == Some(Operation::Create) {
            return Ok(report);
        }
        let mut added = Vec::new();
        for device in &devices.new {
            let pair = [name.as_str().into(), device.as_str().into()];
            if call(self.context, "add", pair, map! {})?.is_truthy() {
                report.comment += &format!(" Added new device {device} to {name}.\n");
                added.push(device.clone());
            } else {
                report.comment += &format!(" Unable to add {device} to {name}.\n");
                report.result = Some(false);
            }
        }
        if !added.is_empty() {
            report.changes.insert("added".into(), listed(&added));
        }
        Ok(report)
    }
}

/// The devices of an array, by what is on them.
struct Devices {
    /// The members of each array, by its UUID.
    members: BTreeMap<String, Vec<String>>,
    /// Devices without RAID metadata.
    new: Vec<String>,
    /// Devices that do not exist, and `missing`.
    missing: Vec<String>,
}

impl Devices {
    fn examine(context: &StateContext, names: &[String]) -> Result<Self, CallError> {
        let mut devices = Devices { members: BTreeMap::new(), new: Vec::new(), missing: Vec::new() };
        for name in names {
            if name == "missing" || !Path::new(name).exists() {
                devices.missing.push(name.clone());
                continue;
            }
            let superblock = call(context, "examine", [name.as_str().into()], map! {"quiet" => true})?;
            match superblock.get("MD_UUID") {
                Some(uuid) => devices.members.entry(uuid.to_string()).or_default().push(name.clone()),
                None => devices.new.push(name.clone()),
            }
        }
        Ok(devices)
    }

    /// Returns the members of the array. Members of another array are an error, the comment.
    fn check(&self, current: Option<&Map>) -> Result<&[String], String> {
        if self.members.len() > 1 {
            let uuids: Vec<String> = self.members.keys().cloned().collect();
            return Err(format!("Devices are a mix of RAID constituents with multiple MD_UUIDs: {}.", shown(&uuids)));
        }
        let Some((uuid, members)) = self.members.first_key_value() else { return Ok(&[]) };
        let own = current.map(|array| array.get("uuid").map(ToString::to_string).unwrap_or_default());
        match own.filter(|own| own != uuid) {
            Some(own) => Err(format!("Devices MD_UUIDs: {uuid} differs from present RAID uuid {own}.")),
            None => Ok(members),
        }
    }
}

fn call<const N: usize>(context: &StateContext, function: &str, positional: [Value; N], keyword: Map) -> CallResult {
    context.call.call(&format!("raid.{function}"), Args { positional: positional.to_vec(), keyword })
}

fn listed(names: &[String]) -> Value {
    names.iter().map(String::as_str).collect()
}

/// Returns names in Python's notation.
fn shown(names: &[String]) -> String {
    listed(names).to_string()
}
