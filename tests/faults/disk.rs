//! A full disk: the master's cache on a small tmpfs that is filled and freed again.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::fault::RECOVERY;
use super::random::Random;
use super::record::Record;

/// A mounted tmpfs, unmounted on drop.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a tmpfs of 32 MB on a directory; an error is the reason to skip the round.
    pub fn mount(path: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(path).map_err(|error| error.to_string())?;
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", "size=32m,mode=700", "tmpfs"]).arg(path).output();
        match output {
            Ok(output) if output.status.success() => Ok(SmallDisk(path.to_owned())),
            Ok(output) => Err(format!("no tmpfs can be mounted here: {}", crate::support::stderr(&output).trim())),
            Err(error) => Err(format!("no tmpfs can be mounted here: mount: {error}")),
        }
    }

    /// Fills the disk until events are refused, and gives the space back.
    pub async fn fill_and_free(&self, random: &mut Random, record: &Record) -> Result<(), String> {
        let filler = self.0.join("filler");
        let refused = record.refused();
        let full = async {
            // Includes the space that the master frees meanwhile.
            let (mut file, zeros) = (std::fs::File::create(&filler).unwrap(), vec![0; 65_536]);
            while record.refused() < refused + 5 {
                while file.write_all(&zeros).is_ok() {}
                let _more = record.wait(Duration::from_millis(50), || record.refused() >= refused + 5).await;
            }
        };
        tokio::time::timeout(RECOVERY, full)
            .await
            .map_err(|_| "the disk is full, but no event is refused".to_owned())?;
        tokio::time::sleep(random.millis(0, 2000)).await;
        std::fs::remove_file(&filler).map_err(|error| format!("freeing the disk failed: {error}"))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _status = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
