//! `wheel.file_roots`: the files in the directories of the option `file_roots`. Paths cannot leave their root.

super::roots::functions!("file_roots", file_roots, true);
