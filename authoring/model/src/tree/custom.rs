//! Custom modules of a tree: their functions.

use std::path::Path;

use super::index::Index;
use crate::catalogue::Signature;
use crate::file::File;

impl Index {
    /// Reads the functions of a custom module: `def` in the first column.
    pub(super) fn python(&mut self, file: &File) {
        let mut parts = file.path.rsplit('/');
        let stem = parts.next().unwrap_or_default().trim_end_matches(".py");
        let stem = if stem == "__init__" { parts.next().unwrap_or_default() } else { stem };
        let directory = file
            .path
            .split('/')
            .rev()
            .find(|part| part.starts_with('_') && Path::new(part).extension().is_none_or(|ending| ending != "py"));
        let parent = file.path.rsplit('/').nth(1).unwrap_or_default();
        let directory = directory.map_or_else(|| format!("_{parent}"), str::to_owned);
        let functions = match directory.as_str() {
            "_modules" => &mut self.custom.execution,
            "_states" => &mut self.custom.states,
            "_runners" => &mut self.custom.runners,
            "_wheel" => &mut self.custom.wheel,
            "_renderers" => {
                self.renderers.insert(stem.to_owned());
                return;
            }
            "_grains" => {
                self.has_custom_grains = true;
                return;
            }
            _ => return,
        };
        let quoted = |line: &str| line.split(['\'', '"']).nth(1).map(str::to_owned);
        let virtual_names: Vec<String> = file
            .text
            .lines()
            .filter(|line| {
                line.trim_start().starts_with("__virtualname__")
                    || line.trim_start().starts_with("return \"")
                    || line.trim_start().starts_with("return '")
            })
            .filter_map(quoted)
            .filter(|name| !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric()))
            .collect();
        let is_open = file.text.contains("setattr(") || file.text.contains("globals()");
        let constant = file.text.lines().find_map(|line| line.strip_prefix("__virtualname__ ="));
        let constant = constant.as_ref().is_some_and(|value| !value.contains(['\'', '"']));
        for module in std::iter::once(stem).chain(virtual_names.iter().map(String::as_str)) {
            if is_open || constant {
                functions.add_open(module);
            }
        }
        let names = || file.text.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next());
        for module in std::iter::once(stem).chain(virtual_names.iter().map(String::as_str)) {
            for function in names().filter(|name| !name.starts_with('_')) {
                for function in [function, function.trim_end_matches('_')] {
                    functions.add(Signature {
                        name: format!("{module}.{function}"),
                        params: &[],
                        doc: "",
                        is_custom: true,
                    });
                }
            }
        }
    }
}
