//! `diskusage`: file systems above a usage.

use brine_text::python_regex::Regex;
use brine_value::{Map, map};
use nix::sys::statvfs::statvfs;

use super::settings::{Settings, number, percent};
use super::{Beacon, Kind, Options, PollContext, entry};

/// Anchored patterns of mount points, each with the percentage from which it is reported.
struct DiskUsage(Vec<(Regex, f64)>);

pub(super) const KIND: Kind = Kind {
    name: "diskusage",
    doc: "File systems with at least the given usage, at each poll.",
    options: Options::Keyed(entry(
        "<mount point>",
        "The percentage from which on the file system is reported, such as `80%`. The name is a mount point, or a \
         regular expression that matches it as a whole.",
    )),
    fields: &[entry("diskusage", "The percentage in use."), entry("mount", "The mount point.")],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let one = |(mount, most): &(String, _)| {
        let pattern = Regex::full(mount).map_err(|error| format!("mount point '{mount}': {error}"))?;
        Ok((pattern, number(mount, most)?))
    };
    Ok(Box::new(DiskUsage(settings.own.iter().map(one).collect::<Result<_, String>>()?)))
}

impl DiskUsage {
    fn events(&self, mounts: &[String], usage: impl Fn(&str) -> Option<f64>) -> Vec<Map> {
        let mut report = Vec::new();
        for (pattern, most) in &self.0 {
            for mount in mounts.iter().filter(|mount| pattern.is_match_at_start(mount).unwrap_or(false)) {
                if let Some(used) = usage(mount).filter(|used| used >= most) {
                    report.push(map! {"diskusage" => used, "mount" => mount});
                }
            }
        }
        report
    }
}

/// Returns the usage of a file system for users other than root, in percent.
fn usage(mount: &str) -> Option<f64> {
    let status = match statvfs(mount) {
        Ok(status) => status,
        Err(error) => {
            tracing::warn!(beacon = "diskusage", mount, %error, "reading the usage of a mount point failed");
            return None;
        }
    };
    let used = status.blocks().saturating_sub(status.blocks_free());
    Some(percent(used, used + status.blocks_available()))
}

/// Parses the mount points of `/proc/self/mounts`, in which spaces are escaped as `\040`.
fn mount_points(table: &str) -> Vec<String> {
    let points = table.lines().filter_map(|line| line.split_whitespace().nth(1));
    points.map(|point| point.replace("\\040", " ").replace("\\011", "\t")).collect()
}

impl Beacon for DiskUsage {
    fn poll(&mut self, _context: &PollContext<'_>) -> Result<Vec<Map>, String> {
        Ok(self.events(&mount_points(&super::read("/proc/self/mounts")?), usage))
    }
}

#[cfg(test)]
mod tests;
