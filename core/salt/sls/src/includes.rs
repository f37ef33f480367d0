//! How deeply includes of SLS files nest. Each level takes room on the stack, whose end would end the whole process.

/// The greatest number of SLS files that include each other in a row.
pub(crate) const MAX_LEVELS: usize = 500;

/// Returns the error of an include at a deeper level.
pub(crate) fn too_deep(sls: &str, included_by: &str) -> String {
    format!(
        "SLS {sls} is not included by SLS {included_by}: includes nest deeper than {MAX_LEVELS} levels\n  hint: let one \
         SLS include several others, instead of each including the next"
    )
}
