//! The client and the timeouts of jobs.

use brine_auth::{LIST_FUNCTIONS, PING};
use brine_client::job::{TargetResponses, minions_with_functions, ping_target};
use brine_job::Times;
use brine_wire::PublishRequest;

use super::super::client::{ClientError, MasterClient};

/// The client and the timeouts of jobs.
pub(super) struct Job<'a> {
    pub client: &'a MasterClient,
    pub times: Times,
}

impl Job<'_> {
    /// Pings the minions of a job's target.
    pub async fn ping_target(&self, request: &PublishRequest) -> Result<TargetResponses, ClientError> {
        ping_target(&mut self.client.link(&[]).await?, request, PING, self.times).await
    }

    /// Finds the minions of a job's target that have its functions.
    pub async fn minions_with_functions(&self, request: &PublishRequest) -> Result<TargetResponses, ClientError> {
        minions_with_functions(&mut self.client.link(&[]).await?, request, LIST_FUNCTIONS, self.times).await
    }
}
