//! Wheel functions: changes to the master by `salt-key`, reactors (`wheel.key.accept`) and the API, one file for each
//! Salt module, its functions declared by `#[function]`.
//!
//! They block. A [`WheelHost`] provides the services of the master beyond its keys.

pub mod key;

use std::sync::Arc;

use brine_function::Function;
use brine_value::Map;

use crate::keys::KeyStore;

/// All wheel functions: one line for each module.
pub static MODULES: &[&[Function<WheelContext>]] = &[key::FUNCTIONS];

/// The services of wheel functions: of the master, or of `salt-key` when it works on the directories itself.
pub trait WheelHost: Send + Sync {
    /// Publishes an event.
    fn fire(&self, tag: &str, body: &Map);

    /// Replaces the publish key, if `rotate_aes_key` allows it: a minion must not decrypt further publishes.
    fn rotate_key(&self);

    /// Returns the caller for the log: a user, or a reaction.
    fn actor(&self) -> String;
}

/// The context of wheel functions.
pub struct WheelContext {
    /// The minions' keys.
    pub keys: Arc<KeyStore>,
    /// Whether the caller is an operator. Reactions do not accept keys of ids with special characters.
    pub attended: bool,
    /// The services of the master.
    pub host: Arc<dyn WheelHost>,
}
