//! Signatures of returns (`require_minion_sign_messages`, `drop_messages_signature_fail`).
//!
//! As in Salt, only returns are verified; the signatures of a minion's other messages are ignored. The returns that a
//! syndic brings are covered by its own signature.

use brine_core::crypt::SignatureAlgorithm;
use brine_core::wire::MinionCommand;
use brine_core::{MinionId, metrics};

use super::decode;
use crate::Shared;
use crate::sessions::SignedLoad;

impl Shared {
    /// Decides by its signature whether a minion's command is carried out. A return that is not is answered with `False`.
    pub(super) async fn accepts_signature(
        &self,
        id: &MinionId,
        command: &MinionCommand,
        signed: Option<SignedLoad>,
        algorithm: SignatureAlgorithm,
    ) -> bool {
        if !matches!(command, MinionCommand::Returns(_) | MinionCommand::SyndicReturns(_)) {
            return true;
        }
        let Some(signed) = signed else {
            if self.config.require_minion_sign_messages {
                metrics::REQUESTS_REFUSED.add(1);
                tracing::error!(
                    minion = %id,
                    "return refused: it is not signed (require_minion_sign_messages): set minion_sign_messages on the minion"
                );
            }
            return !self.config.require_minion_sign_messages;
        };
        let verified = decode(&self.executors.crypto, signed.len(), move || signed.is_valid(algorithm)).await;
        if verified == Some(true) {
            return true;
        }
        if self.config.drop_messages_signature_fail {
            metrics::REQUESTS_REFUSED.add(1);
            tracing::error!(minion = %id, "return refused: its signature is invalid (drop_messages_signature_fail)");
            return false;
        }
        tracing::info!(minion = %id, "signature of a return is invalid: it is accepted without drop_messages_signature_fail");
        true
    }
}
