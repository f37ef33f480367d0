//! Jumps of the master's wall clock.

use super::fault::RECOVERY;
use super::record::Record;
use crate::support::clock::Clock;

/// Sets the clock back one hour, then forward by 25 hours, with events after each jump.
pub async fn jump(clock: &Clock, record: &Record) -> Result<(), String> {
    for seconds in [-3600, 25 * 3600] {
        clock.set(seconds)?;
        record.more_events(50, RECOVERY).await.map_err(|error| format!("{error} (a jump to {seconds} s)"))?;
    }
    Ok(())
}
