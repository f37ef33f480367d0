//! Error responses: a status and a message in the format that the client accepts; and the errors at the start.

use axum::http::StatusCode;
use brine_client::ClientError;
use brine_config::RestOptionError;
use brine_http_server::CertificateError;
use brine_zmtp::TransportError;

/// An error at the startup of the API.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid.
    #[error("{0}")]
    Refused(String),
    /// An option is invalid.
    #[error(transparent)]
    Option(#[from] RestOptionError),
    /// An option is invalid.
    #[error("option 'rest_cherrypy.{name}' is invalid: {reason}")]
    Invalid {
        /// The option.
        name: &'static str,
        /// The reason.
        reason: String,
    },
    /// The certificate or its key cannot be used.
    #[error("loading the certificate of the API failed: {0}")]
    Certificate(#[from] CertificateError),
    /// Only one of the two files of a certificate is configured.
    #[error("loading the certificate of the API failed: ssl_crt and ssl_key are required together")]
    IncompleteCertificate,
    /// A certificate cannot be made or written.
    #[error("making a certificate for the API failed: {0}")]
    MakeCertificate(String),
    /// Listening on the port failed.
    #[error("listening on {address} failed: {error}; is another salt-api running?")]
    Listen {
        /// The address.
        address: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
}

/// The error of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The status of the response.
    pub status: StatusCode,
    /// The message of the response. Salt's, if clients depend on it.
    pub message: String,
    /// The header `Retry-After`, in seconds, if the request may succeed later.
    pub retry_after: Option<u16>,
}

/// The header `Retry-After` of a request that may succeed soon, in seconds.
const SOON: u16 = 5;

impl ApiError {
    /// Creates an error.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        ApiError { status, message: message.into(), retry_after: None }
    }

    /// Returns the error with the advice to repeat the request soon.
    pub fn retried(self) -> Self {
        ApiError { retry_after: Some(SOON), ..self }
    }

    /// Returns an error about a malformed request.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Returns an error about missing or wrong credentials, or missing permission.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    /// Returns the error of a protected resource without a valid session.
    pub fn no_session() -> Self {
        Self::unauthorized("No permission -- see authorization schemes")
    }

    /// Returns the error of an internal failure; its cause is only logged.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "An unexpected error occurred")
    }
}

/// The error of a request to the master.
#[derive(Debug, thiserror::Error)]
pub enum MasterError {
    /// The master does not answer.
    #[error("reaching the master failed: {0}")]
    Unreachable(TransportError),
    /// The user is unknown or not permitted. The message is the master's.
    #[error("{0}")]
    Denied(String),
    /// The master rejects the request with this message.
    #[error("{0}")]
    Refused(String),
    /// The reply cannot be decoded.
    #[error("decoding the master's reply failed: {0}")]
    Reply(String),
    /// The call has timed out.
    #[error("waiting for the result of {0} timed out")]
    TimedOut(String),
    /// The key of the REST API cannot be used.
    #[error(
        "reading the key of the REST API failed: {0}; run salt-api as the user that the master runs as, or name its user in the master's option api_user"
    )]
    NoKey(String),
}

impl From<ClientError> for MasterError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unreachable(error) => MasterError::Unreachable(error),
            ClientError::WrongKey(message) | ClientError::Denied(message) => MasterError::Denied(message),
            ClientError::Refused(message) | ClientError::BadLoad(message) => MasterError::Refused(message),
            ClientError::Reply(reply) => MasterError::Reply(reply),
        }
    }
}

impl From<MasterError> for ApiError {
    fn from(error: MasterError) -> Self {
        match error {
            MasterError::Denied(message) => {
                crate::metrics::UNAUTHENTICATED.add(1);
                ApiError::unauthorized(message)
            }
            MasterError::Refused(message) => ApiError::bad_request(message),
            MasterError::Unreachable(error) => {
                tracing::warn!(%error, "the master does not answer");
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "Salt Master is not available.").retried()
            }
            MasterError::TimedOut(_) => ApiError::new(StatusCode::GATEWAY_TIMEOUT, error.to_string()),
            MasterError::Reply(_) | MasterError::NoKey(_) => {
                tracing::error!(%error, "a request to the master failed");
                ApiError::internal()
            }
        }
    }
}
