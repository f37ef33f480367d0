//! Wheel functions: what `salt-key`, reactors (`wheel.key.accept`) and the API change on the master,
//! one file a Salt module, each declared with `brine_function::functions!`.
//!
//! They block. What they need of the master beyond its keys is asked of a [`WheelHost`].

pub mod key;

use std::sync::Arc;

use brine_function::Function;
use brine_value::Map;

use crate::keys::KeyStore;

/// All wheel functions: one line a module.
pub static MODULES: &[&[Function<WheelContext>]] = &[key::FUNCTIONS];

/// Who runs wheel functions: the master, or `salt-key` when it works on the folders by itself.
pub trait WheelHost: Send + Sync {
    /// Fires an event.
    fn fire(&self, tag: &str, body: &Map);

    /// Replaces the publish key because a minion must not read on; whether `rotate_aes_key` allows it
    /// is the host's to know.
    fn rotate_key(&self);

    /// Who asks, for the log: a user, or a reaction.
    fn actor(&self) -> String;
}

/// The context of wheel functions.
pub struct WheelContext {
    /// The minions' keys.
    pub keys: Arc<KeyStore>,
    /// Whether an operator asks. Where a reaction does, keys of ids with special characters are not accepted.
    pub attended: bool,
    /// Who runs the function.
    pub host: Arc<dyn WheelHost>,
}
