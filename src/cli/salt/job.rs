//! The client and the timeouts of jobs.

use brine_client::job::{Present, able, pinged};
use brine_job::Times;
use brine_master::{LIST_FUNCTIONS, PING};
use brine_wire::PublishRequest;

use super::super::client::{ClientError, MasterClient};

/// The client and the timeouts of jobs.
pub(super) struct Job<'a> {
    pub client: &'a MasterClient,
    pub times: Times,
}

impl Job<'_> {
    /// Pings the minions of a job's target.
    pub async fn pinged(&self, request: &PublishRequest) -> Result<Present, ClientError> {
        pinged(&mut self.client.link(&[]).await?, request, PING, self.times).await
    }

    /// Finds the minions of a job's target that have its functions.
    pub async fn able(&self, request: &PublishRequest) -> Result<Present, ClientError> {
        able(&mut self.client.link(&[]).await?, request, LIST_FUNCTIONS, self.times).await
    }
}
