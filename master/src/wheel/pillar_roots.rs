//! `wheel.pillar_roots`: the files in the directories of the option `pillar_roots`. Paths stay inside of their root.

super::roots::functions!("pillar_roots", pillar_roots, false);
