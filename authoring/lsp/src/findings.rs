//! Findings as diagnostics.

use brine_lint::{Finding, Options, Severity, check_file};
use lsp_types::{Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, NumberOrString};

use crate::workspace::{Here, Root};

/// The largest number of diagnostics of a file.
const MAX_DIAGNOSTICS: usize = 500;

/// Returns the findings in a file.
pub(crate) fn of(here: &Here<'_>) -> Vec<Finding> {
    let default = Options::default();
    let options = here.root.map_or(&default, |root| &root.options);
    if !options.includes(&here.file.path) {
        return Vec::new();
    }
    let mut findings = check_file(here.tree, &here.workspace.catalogue, options, here.file);
    let repeated = here.root.map(Root::repeated).unwrap_or_default();
    findings.extend(repeated.iter().filter(|finding| finding.path == here.file.path).cloned());
    // What a file outside of a folder refers to is not known.
    findings.retain(|finding| here.root.is_some() || !finding.code.starts_with("B3"));
    findings
}

/// Returns the diagnostics of a file.
pub(crate) fn diagnostics(here: &Here<'_>) -> Vec<Diagnostic> {
    of(here).iter().take(MAX_DIAGNOSTICS).map(|finding| diagnostic(here, finding)).collect()
}

/// Returns the diagnostic of a finding.
pub(crate) fn diagnostic(here: &Here<'_>, finding: &Finding) -> Diagnostic {
    let severity = match finding.severity {
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Style => DiagnosticSeverity::HINT,
    };
    let related = finding.related.iter().filter_map(|(place, words)| {
        Some(DiagnosticRelatedInformation { location: here.location(place)?, message: words.clone() })
    });
    let related: Vec<_> = related.collect();
    let tags = match finding.code {
        "B310" => Some(vec![DiagnosticTag::UNNECESSARY]),
        "B505" => Some(vec![DiagnosticTag::DEPRECATED]),
        _ => None,
    };
    Diagnostic {
        range: here.range(&visible(here, finding)),
        severity: Some(severity),
        code: Some(NumberOrString::String(finding.code.to_owned())),
        source: Some("brine".to_owned()),
        message: finding.message.clone(),
        related_information: Some(related).filter(|related| !related.is_empty()),
        tags,
        ..Diagnostic::default()
    }
}

/// Returns the bytes of a finding up to the end of its first line.
fn visible(here: &Here<'_>, finding: &Finding) -> std::ops::Range<usize> {
    let span = finding.span.clone();
    let inside = here.file.text.get(span.clone()).unwrap_or_default();
    let end = inside.find('\n').filter(|end| *end > 0).map_or(span.end, |end| span.start + end);
    span.start..end
}
