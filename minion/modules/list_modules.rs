//! The build script of the module crates. It generates the list of the `MODULE` statics of all modules that
//! `src/lib.rs` declares, so that adding a module takes one line there.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/lib.rs");
    println!("cargo::rerun-if-changed=../list_modules.rs");
    let text = fs::read_to_string("src/lib.rs")?;
    let module = |line: &'_ str| {
        let name = line.strip_prefix("pub mod ").or_else(|| line.strip_prefix("pub(crate) mod "))?.strip_suffix(';')?;
        Some(format!("&{name}::MODULE"))
    };
    let modules = text.lines().filter_map(module).collect::<Vec<_>>().join(", ");
    let path = PathBuf::from(env::var("OUT_DIR")?).join("modules.rs");
    let doc = "/// The functions of the modules of this crate.";
    // The output of a build.
    #[allow(clippy::disallowed_methods)]
    fs::write(path, format!("{doc}\npub static MODULES: &[&Module] = &[{modules}];\n"))?;
    Ok(())
}
