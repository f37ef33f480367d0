//! Collects the `ROOM` of every module that `src/lib.rs` declares, so that adding a module takes one line there.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/lib.rs");
    println!("cargo::rerun-if-changed=build.rs");
    let text = fs::read_to_string("src/lib.rs")?;
    let modules = text.lines().filter_map(|line| line.strip_prefix("pub(crate) mod ")?.strip_suffix(';'));
    let rooms = modules.map(|module| format!("&{module}::ROOM")).collect::<Vec<_>>().join(", ");
    let path = PathBuf::from(env::var("OUT_DIR")?).join("rooms.rs");
    fs::write(path, format!("static ALL: &[&Room] = &[{rooms}];\n"))?;
    Ok(())
}
