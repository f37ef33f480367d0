//! Signatures of returns (`require_minion_sign_messages`, `drop_messages_signature_fail`).
//!
//! As in Salt, only returns are verified; the signatures of a minion's other messages are ignored. The returns that a
//! syndic brings are covered by its own signature.

use std::sync::Arc;

use brine_crypt::{PublicKey, SignatureAlgorithm};
use brine_ids::MinionId;
use brine_master_access::admission::sessions::Opened;
use brine_value::{Map, Value};
use brine_wire::MinionCommand;
use brine_wire::signed::Signed;

use super::Requests;
use super::decode;

/// A signature and the public key that verifies it.
pub(super) type WithKey = (Signed, Arc<PublicKey>);

/// Returns whether the signature of a command is verified.
fn is_return(command: &MinionCommand) -> bool {
    matches!(command, MinionCommand::Returns(_) | MinionCommand::SyndicReturns { .. })
}

/// Returns the signature of a return, if it carries one.
pub(super) fn return_signature(load: &Map, opened: &Opened) -> Option<WithKey> {
    let is_return = matches!(load.get("cmd").and_then(Value::as_str), Some("_return" | "_syndic_return"));
    is_return.then(|| Some((Signed::of(load)?, opened.public_key())))?
}

impl Requests {
    /// Whether the command is accepted with regard to its signature. A refused return is answered with `False`.
    pub(super) async fn accepts_signature(
        &self,
        id: &MinionId,
        command: &MinionCommand,
        signed: Option<WithKey>,
        algorithm: SignatureAlgorithm,
    ) -> bool {
        if !is_return(command) {
            return true;
        }
        let Some((signed, key)) = signed else {
            if self.services.config.require_minion_sign_messages {
                brine_wire::metrics::REQUESTS_REFUSED.add(1);
                tracing::error!(
                    minion = %id,
                    "return refused: it is not signed (require_minion_sign_messages): set minion_sign_messages on the minion"
                );
            }
            return !self.services.config.require_minion_sign_messages;
        };
        let verified =
            decode(&self.services.executors.crypto, signed.size(), move || signed.is_valid(&key, algorithm)).await;
        if verified == Some(true) {
            return true;
        }
        if self.services.config.drop_messages_signature_fail {
            brine_wire::metrics::REQUESTS_REFUSED.add(1);
            tracing::error!(minion = %id, "return refused: its signature is invalid (drop_messages_signature_fail)");
            return false;
        }
        tracing::info!(minion = %id, "signature of a return is invalid: it is accepted without drop_messages_signature_fail");
        true
    }
}
