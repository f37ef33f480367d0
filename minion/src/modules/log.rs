//! `log`: words for the minion's log, from SLS files and templates.

use brine_function::functions;
use brine_value::Value;

use crate::context::Context;

functions! {
    module "log", context Context;

    /// Logs a message that only developers look for. Gives true.
    ///
    /// CLI Example:
    ///
    ///     salt '*' log.debug 'message'
    fn debug(context, message: Value) {
        tracing::debug!(jid = context.job.jid, "{message}");
        Ok(true.into())
    }

    /// Logs a message of normal life. Gives true.
    ///
    /// CLI Example:
    ///
    ///     salt '*' log.info 'message'
    fn info(context, message: Value) {
        tracing::info!(jid = context.job.jid, "{message}");
        Ok(true.into())
    }

    /// Logs a message about something unexpected. Gives true.
    ///
    /// CLI Example:
    ///
    ///     salt '*' log.warning 'message'
    fn warning(context, message: Value) {
        tracing::warn!(jid = context.job.jid, "{message}");
        Ok(true.into())
    }

    /// Logs a message about a failure. Gives true.
    ///
    /// CLI Example:
    ///
    ///     salt '*' log.error 'message'
    fn error(context, message: Value) {
        tracing::error!(jid = context.job.jid, "{message}");
        Ok(true.into())
    }

    /// As `error`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' log.critical 'message'
    fn critical(context, message: Value) {
        error(context, message)
    }
}
