//! Which directories of a tree are roots, and the kind of each file.

use std::collections::BTreeSet;
use std::path::Path;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// An SLS with states; also of an orchestration.
    State,
    /// A pillar SLS.
    Pillar,
    /// The top file of states.
    Top,
    /// The top file of the pillar.
    PillarTop,
    /// A reactor SLS.
    Reactor,
    /// A template that others import.
    Template,
    /// A custom module.
    Python,
    /// Another file: only its path counts.
    Other,
}

impl FileKind {
    /// Whether the file is rendered to data with states, pillar or targets.
    pub fn is_sls(self) -> bool {
        !matches!(self, FileKind::Template | FileKind::Python | FileKind::Other)
    }
}

/// The roots of a tree, as paths relative to it; the empty path is the tree itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// The roots of states.
    pub state_roots: Vec<String>,
    /// The roots of the pillar.
    pub pillar_roots: Vec<String>,
}

/// Whether a directory of this name is a root of the pillar.
fn is_pillar(name: &str) -> bool {
    ["pillar", "pillars"].iter().any(|word| name.ends_with(word) || name == "pillar_roots")
}

/// Whether a directory has custom modules: one of a root, or of `module_dirs`.
fn has_modules(name: &str) -> bool {
    name.starts_with('_') || ["modules", "states", "runners", "wheel", "grains", "renderers"].contains(&name)
}

/// Whether this is the name of a top file.
fn is_top(name: &str) -> bool {
    name == "top.sls" || name.ends_with("_top.sls")
}

/// Names of directories with reactor files.
const REACTORS: [&str; 4] = ["reactor", "reactors", "reactor.d", "reactions"];

impl Layout {
    /// Finds the roots among the paths of all files: a directory with a top file, a directory called `pillar`, and
    /// otherwise the tree itself.
    ///
    /// ```
    /// use brine_authoring_model::Layout;
    ///
    /// let layout = Layout::detect(["salt/top.sls", "salt/web/init.sls", "pillar/top.sls"]);
    /// assert_eq!((layout.state_roots, layout.pillar_roots), (vec!["salt".to_owned()], vec!["pillar".to_owned()]));
    /// let layout = Layout::detect(["nginx/init.sls", "test/salt/pillar/a.sls"]);
    /// assert_eq!((layout.state_roots, layout.pillar_roots), (vec![String::new()], vec!["test/salt/pillar".to_owned()]));
    /// ```
    pub fn detect<'p>(paths: impl IntoIterator<Item = &'p str>) -> Self {
        let (mut states, mut pillars) = (BTreeSet::new(), BTreeSet::new());
        for path in paths.into_iter().filter(|path| Path::new(path).extension().is_some_and(|end| end == "sls")) {
            let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
            let mut at = 0;
            let pillar = directory.split('/').find_map(|part| {
                at += part.len() + 1;
                is_pillar(part).then(|| directory[..at - 1].to_owned())
            });
            match pillar {
                Some(pillar) => _ = pillars.insert(pillar),
                None if name == "top.sls" => _ = states.insert(directory.to_owned()),
                None => {}
            }
        }
        // A tree with a top file below `salt` has its states there.
        if states.is_empty() {
            states.insert(String::new());
        }
        Layout { state_roots: states.into_iter().collect(), pillar_roots: pillars.into_iter().collect() }
    }

    /// Returns the kind of a file.
    pub fn kind(&self, path: &str) -> FileKind {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        if name == "pillar.example" || name == "pillar.example.sls" {
            return FileKind::Pillar;
        }
        match extension {
            "sls" => {}
            "jinja" | "j2" | "jinja2" => return FileKind::Template,
            "py" if directory.rsplit('/').next().is_some_and(has_modules) => return FileKind::Python,
            _ => return FileKind::Other,
        }
        let is_below = |root: &String| below(root, path).is_some();
        if self.pillar_roots.iter().any(is_below) {
            return if is_top(name) { FileKind::PillarTop } else { FileKind::Pillar };
        }
        if directory.split('/').any(|part| REACTORS.contains(&part)) {
            return FileKind::Reactor;
        }
        if is_top(name) {
            return FileKind::Top;
        }
        FileKind::State
    }

    /// Returns the names of an SLS file: one for each root that it is below, that of the innermost root first.
    pub fn names(&self, path: &str, kind: FileKind) -> Vec<String> {
        let roots = match kind {
            FileKind::Pillar | FileKind::PillarTop => &self.pillar_roots,
            _ => &self.state_roots,
        };
        let mut inside: Vec<&str> = roots.iter().filter_map(|root| below(root, path)).collect();
        inside.sort_by_key(|rest| rest.len());
        inside.into_iter().filter_map(name).collect()
    }
}

/// Whether a file may be the configuration of a master or a minion, by its path.
pub fn is_configuration(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let (name, directory) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_drop_in = || Path::new(name).extension().is_some_and(|end| end == "conf");
    matches!(name, "master" | "minion") || matches!(directory, "master.d" | "minion.d") && is_drop_in()
}

/// Returns whether a file surely configures a master, or a minion, by its path; `None` for another file.
///
/// ```
/// use brine_authoring_model::layout::is_of_master;
///
/// assert_eq!(is_of_master("etc/salt/master"), Some(true));
/// assert_eq!(is_of_master("etc/salt/minion.d/web.conf"), Some(false));
/// assert_eq!(is_of_master("salt/master/init.sls"), None);
/// ```
pub fn is_of_master(path: &str) -> Option<bool> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let last = directory.rsplit('/').next().unwrap_or_default();
    let is_main = ["salt", "etc", "conf", "config"].contains(&last);
    let is_drop_in = Path::new(name).extension().is_some_and(|end| end == "conf");
    match (name, last) {
        ("master", _) if is_main => Some(true),
        ("minion", _) if is_main => Some(false),
        (_, "master.d") if is_drop_in => Some(true),
        (_, "minion.d") if is_drop_in => Some(false),
        _ => None,
    }
}

/// Returns the path below a directory.
pub fn below<'p>(root: &str, path: &'p str) -> Option<&'p str> {
    if root.is_empty() { Some(path) } else { path.strip_prefix(root)?.strip_prefix('/') }
}

/// Returns the name of an SLS file at a path below its root.
pub fn name(path: &str) -> Option<String> {
    let stem = path.strip_suffix(".sls")?;
    Some(stem.strip_suffix("/init").unwrap_or(stem).replace('/', "."))
}
