//! Beacons of states: the argument `beacon` of a state configures a beacon for its file, package or service.

use brine_function::{Args, CallResult};
use brine_value::{Map, Value, map};

use crate::{StateContext, StateReturn};

/// The seconds between two polls of a beacon, unless the state has `interval` in its `beacon_data`.
const DEFAULT_INTERVAL: i64 = 60;

/// The beacon of a module of states.
pub struct StateBeacon<'a> {
    /// The module of states, such as `file`.
    pub state: &'a str,
    /// Its functions that can have a beacon.
    pub functions: &'a [&'a str],
    /// The module of beacons, such as `inotify`.
    pub module: &'a str,
}

/// The arguments of `mod_beacon`, which the engine calls at the end of a run.
#[derive(Args)]
pub struct BeaconArgs {
    /// The state's name.
    pub name: String,
    /// The function of the state.
    pub sfun: Option<String>,
    /// Whether the state has a beacon.
    #[default]
    pub beacon: Value,
    /// Options of the beacon.
    #[default(Map::new())]
    pub beacon_data: Map,
}

impl BeaconArgs {
    /// Returns an option of the beacon, or its default.
    pub fn option(&self, name: &str, default: impl Into<Value>) -> Value {
        self.beacon_data.get(name).cloned().unwrap_or_else(|| default.into())
    }
}

impl StateBeacon<'_> {
    /// Configures the beacon `beacon_MODULE_NAME` with these options by the state `beacon.present`.
    ///
    /// # Errors
    /// The beacons of the minion cannot be changed.
    pub fn configure(&self, context: &StateContext, args: &BeaconArgs, options: Map) -> CallResult {
        let StateBeacon { state, functions, module } = self;
        let function = args.sfun.as_deref().unwrap_or_default();
        if !functions.contains(&function) {
            let comment = format!("{state}.{function} does not work with the beacon state function");
            return Ok(StateReturn::failed(&args.name, comment).into());
        }
        if !args.beacon.is_truthy() {
            return Ok(StateReturn::ok(&args.name, "Not adding beacon.").into());
        }
        let mut keyword = map! {
            "name" => format!("beacon_{module}_{}", args.name),
            "interval" => args.option("interval", DEFAULT_INTERVAL),
            "beacon_module" => *module,
        };
        keyword.extend(options);
        context.call_state("beacon.present", Args::keyword(keyword))
    }
}
