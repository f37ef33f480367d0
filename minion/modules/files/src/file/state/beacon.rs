//! `file.mod_beacon`: a beacon for changes of a file or directory.

use brine_context::StateContext;
use brine_context::state_beacon::{BeaconArgs, StateBeacon};
use brine_function::{CallResult, function};
use brine_value::{Map, list, map};

const BEACON: StateBeacon<'_> = StateBeacon { state: "file", functions: &["managed", "directory"], module: "inotify" };

/// Configure a beacon for a state with `beacon: True`, at the end of the run: events for changes of its file, or of
/// everything below its directory.
///
/// SLS Example:
///
///     /etc/app.conf:
///       file.managed:
///         - contents: port=80
///         - beacon: True
#[function]
pub fn mod_beacon(
    context: &StateContext,
    #[args] args: BeaconArgs,
    /// The arguments of the state, among them `beacon_data`, the options of the beacon.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    let mut watched = map! {"mask" => args.option("mask", list!["create", "delete", "modify"])};
    if args.sfun.as_deref() == Some("directory") {
        watched.extend(map! {
            "auto_add" => args.option("auto_add", true),
            "recurse" => args.option("recurse", true),
            "exclude" => args.option("exclude", list![]),
        });
    }
    let options = map! {
        "files" => map! {args.name.as_str() => watched},
        "coalesce" => args.option("coalesce", false),
    };
    BEACON.configure(context, &args, options)
}
