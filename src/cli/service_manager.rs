//! Tells systemd that a daemon serves, lives and stops (`Type=notify`, `WatchdogSec`). Without systemd nothing happens.

use std::time::Duration;

use sd_notify::NotifyState;

/// Tells that this daemon serves, and from now on that its runtime makes progress, twice in the time that `WatchdogSec`
/// allows. Must be called within the runtime.
pub fn serving() {
    tell(&[NotifyState::Ready]);
    if let Some(limit) = sd_notify::watchdog_enabled().filter(|limit| *limit >= Duration::from_millis(2)) {
        tokio::spawn(async move {
            let mut interval = tokio::time::interval(limit / 2);
            loop {
                interval.tick().await;
                tell(&[NotifyState::Watchdog]);
            }
        });
    }
}

/// Tells that this daemon stops.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "telling systemd about the state of this daemon failed");
    }
}
