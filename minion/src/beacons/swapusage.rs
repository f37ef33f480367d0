//! `swapusage`: swap space in use, from so many percent on.

use super::Look;
use super::memusage::{kilobytes, start_for};
use super::settings::{Settings, percent};

pub(super) fn start(settings: &Settings) -> Result<Box<dyn Look>, String> {
    start_for(settings, "swapusage", |info| {
        let (total, free) = (kilobytes(info, "SwapTotal")?, kilobytes(info, "SwapFree")?);
        Some(percent(total.saturating_sub(free), total))
    })
}
