//! From top file to low chunks to results: the state run.
