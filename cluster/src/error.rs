//! The errors of requests to the NATS servers.

/// The error of a request to the NATS servers.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The servers do not answer, or reject the request.
    #[error("NATS: {0}")]
    Nats(String),
    /// JetStream has less storage than a cluster needs at least.
    #[error(
        "NATS: JetStream has no room for the cluster, which needs {needed} MiB: free disk space on the hosts of the servers \
         (JetStream takes three quarters of what is free at their start), or raise 'max_file_store'"
    )]
    Storage {
        /// What is needed, in MiB.
        needed: i64,
    },
    /// A file named in the option `cluster` cannot be read.
    #[error("option 'cluster': {0}")]
    File(#[from] std::io::Error),
    /// An address in `servers` is invalid.
    #[error("option 'cluster': 'servers' is invalid: {0}")]
    Servers(String),
    /// A value cannot be decrypted: its writer did not have the secret.
    #[error("the value of {0} cannot be decrypted: the masters of a cluster need the same secret")]
    Undecryptable(String),
    /// A value was removed without the secret: members remove values by sealed markers.
    #[error("the value of {0} was removed without the secret of the cluster")]
    Removed(String),
    /// An old value was stored again.
    #[error("the value of {0} is an old one that was stored again without the secret of the cluster")]
    Replayed(String),
    /// A part of a value was replaced or removed.
    #[error("the parts of the value of {0} do not belong together")]
    Damaged(String),
}

impl LinkError {
    /// Whether a value was written or removed by somebody who does not have the secret.
    pub(crate) fn is_forgery(&self) -> bool {
        matches!(
            self,
            LinkError::Undecryptable(_) | LinkError::Removed(_) | LinkError::Replayed(_) | LinkError::Damaged(_)
        )
    }
}

pub(crate) fn nats(error: impl std::fmt::Display) -> LinkError {
    LinkError::Nats(error.to_string())
}
