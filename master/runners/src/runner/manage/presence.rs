//! The functions of `manage` about connected minions, which do not contact minions. Salt's different names for presence
//! are equivalent here.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use crate::runner::RunnerContext;

macro_rules! presence_functions {
    ($($connected:ident $disconnected:ident;)*) => {
        $(
            /// Return the minions that are connected to the master. No command is sent to minions.
            #[function]
            pub fn $connected(
                context: &RunnerContext,
                /// List of the minions that are looked for; all by default.
                subset: Option<Vec<String>>,
                /// Whether the address of each minion is returned.
                #[default(false)]
                show_ip: bool,
            ) -> CallResult {
                Ok(connected(context, subset, show_ip))
            }

            /// Return the accepted minions that are not connected to the master. No command is sent to minions.
            #[function]
            pub fn $disconnected(
                context: &RunnerContext,
                /// List of the minions that are looked for; all by default.
                subset: Option<Vec<String>>,
                /// Without effect: the minions are not connected.
                #[default(false)]
                show_ip: bool,
            ) -> CallResult {
                _ = show_ip;
                disconnected(context, subset)
            }
        )*

        /// Runner functions of `manage` about connections.
        pub static FUNCTIONS: Functions<RunnerContext> = registry!("manage", [$($connected, $disconnected),*]);
    };
}

presence_functions! {
    present not_present;
    alived not_alived;
    joined not_joined;
    allowed not_allowed;
    reaped not_reaped;
    list_state list_not_state;
}

/// Returns the sorted ids of the connected minions; with `show_ip`, a mapping from id to address.
fn connected(context: &RunnerContext, subset: Option<Vec<String>>, show_ip: bool) -> Value {
    let minions = context.master.facts.present_addresses().into_iter();
    let minions = minions.map(|(id, address)| (id.to_string(), address));
    let minions = minions.filter(|(id, _)| subset.as_ref().is_none_or(|subset| subset.contains(id)));
    if show_ip {
        minions.map(|(id, address)| (Value::from(id), Value::from(address.to_string()))).collect::<Map>().into()
    } else {
        minions.map(|(id, _)| id).collect::<Vec<_>>().into()
    }
}

/// Returns the ids of the accepted minions that are not connected, sorted.
fn disconnected(context: &RunnerContext, subset: Option<Vec<String>>) -> CallResult {
    let connected = context.master.facts.present_addresses();
    let mut accepted = context.storage().accepted().map_err(CallError::execution)?;
    accepted.retain(|id| {
        !connected.keys().any(|other| other.as_str() == id) && subset.as_ref().is_none_or(|subset| subset.contains(id))
    });
    accepted.sort();
    Ok(accepted.into())
}
