//! The scripts of the shells.

use super::Shell;
use crate::cli::TOOLS;
use brine_text::shell::quote;

/// Returns the script of a shell, which calls this program: by its name if that is on the path, or else by its path.
pub fn script(shell: Shell) -> String {
    let text = match shell {
        Shell::Bash => include_str!("scripts/brine.bash"),
        Shell::Zsh => include_str!("scripts/brine.zsh"),
        Shell::Fish => include_str!("scripts/brine.fish"),
    };
    let tools: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    text.replace("@TOOLS@", &format!("brine {}", tools.join(" "))).replace("@BRINE@", &program())
}

fn program() -> String {
    let Ok(own) = std::env::current_exe() else { return "brine".to_owned() };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_found = std::env::split_paths(&path)
        .map(|directory| directory.join("brine"))
        .find(|program| program.is_file())
        .is_some_and(|program| program.canonicalize().is_ok_and(|program| program == own));
    if is_found { "brine".to_owned() } else { quote(&own.display().to_string()) }
}
