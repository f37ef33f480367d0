//! Errors of a session with the master.

use std::path::PathBuf;
use std::time::Duration;

use brine_context::UpstreamError;
use brine_crypt::CryptError;
use brine_ids::MinionId;
use brine_runtime::executors::ExecutorError;
use brine_system::files::FileError;
use brine_wire::{WireError, private};
use brine_zmtp::TransportError;

/// The error of a session with the master.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The master does not reply.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// A message cannot be decrypted or verified.
    #[error(transparent)]
    Crypt(#[from] CryptError),
    /// A message does not decode.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A reply encrypted for this minion's key is invalid.
    #[error(transparent)]
    Private(#[from] private::PrivateError),
    /// A key file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The master's key differs from the known one.
    #[error(
        "the master's key is not the one in {0}: this may be a man in the middle; ask the master's operator for its fingerprint \
         (`salt-key -F master`), and replace the file only if the master's key was replaced on purpose"
    )]
    ChangedMaster(PathBuf),
    /// The master's key has another fingerprint than `master_finger`.
    #[error("the master's key is not trusted: expected the fingerprint {expected} (master_finger), got {found}")]
    WrongFingerprint {
        /// The configured fingerprint.
        expected: String,
        /// The fingerprint of the master's key.
        found: String,
    },
    /// The master's key is not signed, or its signature is invalid.
    #[error("verifying the master's key by {path} failed: {reason}")]
    NotVouchedFor {
        /// The public key that should have signed it.
        path: PathBuf,
        /// The missing or invalid part.
        reason: &'static str,
    },
    /// The master signs its key, and this minion does not verify the signature.
    #[error(
        "the master signs its key (master_sign_pubkey): copy the public key that signs to this minion and set \
         verify_master_pubkey_sign"
    )]
    VouchedFor,
    /// The master failed to prove that it holds its key.
    #[error("the master did not return the token that it was sent")]
    WrongToken,
    /// Encryption, decryption or verification panicked.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    /// The key is pending.
    #[error(
        "the master has not accepted this minion's key yet: compare the fingerprints (`salt-minion --check` here, `salt-key -f {0}` \
         there), then run `salt-key -a {0}` there"
    )]
    Pending(MinionId),
    /// The key is rejected, or denied because the master knows another one for the id. The protocol does not tell which.
    #[error(
        "the master has rejected this minion's key, or knows another one for '{0}' (a reinstalled or cloned minion): \
         compare the fingerprints (`salt-minion --check` here, `salt-key -f {0}` there); if this is the right minion, run \
         `salt-key -d {0}` there, start the minion again, and accept its key, or accept the key that was refused by \
         `salt-key -a {0} --include-denied --include-rejected`, and start the minion again"
    )]
    Rejected(MinionId),
    /// The master supports no cipher that this minion allows.
    #[error(
        "the master allows none of the ciphers that the option 'ciphers' allows here ({0}): compare it with the master's"
    )]
    NoCipher(String),
    /// The reply to an authentication is not signed, although the master's key is known.
    #[error("the reply to the authentication is not signed with the master's key: it is refused")]
    Unsigned,
    /// The master has reached `max_minions`.
    #[error("the master has reached max_minions")]
    Full,
    /// The master defers the authentication.
    #[error("the master defers authentications: too many others wait there; the next try is due in {0:?}")]
    Deferred(Duration),
    /// The master refuses a request.
    #[error("the master refuses the request")]
    Refused,
    /// A publish that must be signed has no signature.
    #[error("a publish is not signed with the master's key")]
    UnsignedPublish,
    /// A publish is replayed.
    #[error("a publish is a replay")]
    Replay,
}

impl ChannelError {
    /// Whether the name of the master does not resolve.
    pub fn is_unresolved(&self) -> bool {
        matches!(self, ChannelError::Transport(TransportError::Unresolved { .. }))
    }

    /// Whether a publish did not arrive as the master has sent it.
    pub fn is_damage(&self) -> bool {
        use TransportError::{Malformed, TooLarge, Unfinished};
        matches!(
            self,
            ChannelError::Transport(Malformed(_) | TooLarge { .. } | Unfinished { .. })
                | ChannelError::Crypt(_)
                | ChannelError::Wire(_)
                | ChannelError::UnsignedPublish
        )
    }

    /// Whether a man in the middle could have caused this error by a reply that neither proves nor changes anything.
    pub fn may_be_forged(&self) -> bool {
        match self {
            ChannelError::Refused
            | ChannelError::Unsigned
            | ChannelError::Wire(_)
            | ChannelError::WrongToken
            | ChannelError::Executor(_) => true,
            ChannelError::Crypt(error) => matches!(
                error,
                CryptError::WrongKey | CryptError::BadSignature | CryptError::WrongNonce | CryptError::Malformed(_)
            ),
            _ => false,
        }
    }
}

impl From<ChannelError> for UpstreamError {
    fn from(error: ChannelError) -> Self {
        use ChannelError::{Deferred, Full, Pending, Refused, Rejected, Transport};
        match error {
            Transport(_) | Full | Deferred(_) => UpstreamError::Unavailable(error.into()),
            Refused | Pending(_) | Rejected(_) => UpstreamError::Refused(error.into()),
            _ => UpstreamError::Invalid(error.into()),
        }
    }
}
