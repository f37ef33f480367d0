//! `swapusage`: swap usage above a percentage.

use super::memusage::{kilobytes, start_for};
use super::settings::{Settings, percent};
use super::{Beacon, Kind, Options, entry};

pub(super) const KIND: Kind = Kind {
    name: "swapusage",
    doc: "Swap usage of at least the given percentage, at each poll.",
    options: Options::Named(&[entry("percent", "Required. The percentage, such as `13%`.")]),
    fields: &[entry("swapusage", "The percentage in use.")],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    start_for(settings, "swapusage", |info| {
        let (total, free) = (kilobytes(info, "SwapTotal")?, kilobytes(info, "SwapFree")?);
        Some(percent(total.saturating_sub(free), total))
    })
}
