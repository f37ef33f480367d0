//! Damage to the store while the master is down.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::random::Random;
use super::record::now;
use super::world::World;

const STORE: &str = "brine.redb";

/// Kills the master, damages its store, and starts it again. Returns the time of the damage if the master has moved the
/// store aside; otherwise nothing may be missing.
pub async fn damage(world: &mut World, random: &mut Random) -> Result<Option<u64>, String> {
    world.kill_master();
    let directory = world.path("cache");
    let before = files(&directory);
    let store = before.iter().find(|path| path.ends_with(STORE)).ok_or("the master has no store")?;
    let what = tear(store, random).map_err(|error| format!("damaging the store failed: {error}"))?;
    // A client may read the last acknowledgements of the killed master only now.
    let time = now();
    world.start_master().await.map_err(|error| format!("{error} (after this damage: {what})"))?;
    let is_aside = |path: &PathBuf| !before.contains(path) && path.to_string_lossy().contains(STORE);
    Ok(files(&directory).iter().any(is_aside).then_some(time))
}

/// Damages a file in one of four ways and describes it.
fn tear(path: &Path, random: &mut Random) -> std::io::Result<String> {
    let file = std::fs::File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    let page = 4096 * random.within(0, length / 4096);
    Ok(match random.within(0, 4) {
        0 => {
            let size = random.within(1, length);
            file.set_len(size)?;
            format!("cut to {size} of {length} bytes")
        }
        1 => {
            for _ in 0..64 {
                let (place, mut byte) = (random.within(0, length), [0]);
                file.read_exact_at(&mut byte, place)?;
                file.write_all_at(&[byte[0] ^ (1 << random.within(0, 8))], place)?;
            }
            "64 bits flipped".to_owned()
        }
        2 => {
            file.write_all_at(&[0; 4096], page)?;
            format!("zeros for 4096 bytes from {page} on")
        }
        _ => {
            let garbage: Vec<u8> = (0..4096).map(|_| random.next().to_le_bytes()[0]).collect();
            file.write_all_at(&garbage, page)?;
            format!("garbage for 4096 bytes from {page} on")
        }
    })
}

/// Returns all files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            paths.extend(files(&entry.path()));
        } else {
            paths.push(entry.path());
        }
    }
    paths
}
