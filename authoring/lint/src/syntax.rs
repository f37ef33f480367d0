//! `B1`: what is wrong in one file by itself.

use brine_authoring_model::{Place, ProblemKind};

use crate::{Check, Finding};

impl Check<'_> {
    pub(crate) fn syntax(&mut self) {
        for problem in &self.file.problems {
            let is_custom = || {
                let name = self.file.text.get(problem.span.clone()).unwrap_or_default();
                self.index.renderers.contains(name)
            };
            if problem.kind == ProblemKind::Renderer && is_custom() {
                continue;
            }
            let code = match problem.kind {
                ProblemKind::Jinja => "B101",
                ProblemKind::Yaml => "B102",
                ProblemKind::RepeatedKey => "B103",
                ProblemKind::Structure => "B104",
                ProblemKind::Renderer => "B105",
            };
            let mut finding = Finding::new(code, &self.file.path, problem.span.clone(), problem.message.clone());
            if let Some(first) = &problem.related {
                finding = finding.related(Place::new(&self.file.path, first), "the first one");
            }
            self.add(finding);
        }
    }
}
