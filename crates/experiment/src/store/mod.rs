//! What an experiment leaves on disk.
//!
//! ```text
//! <out>/<name>.partial/               while it is computed, by any number of processes at once
//!     description.toml
//!     <process>.journal               tables, parts of tables and answers of scans, each under its key, as they are done
//!     <process>.whole/                a folder that is being put together
//! <out>/<name>/                       when it is whole: renamed in one step
//!     …                               tables (in packs where they are many), figures, report
//!     provenance.json                 digests of all files; without it, or with other digests, the folder is damaged
//! ```
//!
//! A result is addressed by its *key*: a digest of everything that it depends on ([`crate::Run::key`]). Wherever a whole record
//! or table with that key lies (journals of this or another experiment, finished folders) it is the result: [`Places`] looks
//! in all of them. Any number of processes may compute the same experiment; they never write to one file, and the one that
//! comes second to the finished folder takes what is there.

pub mod disk;
pub mod folder;
pub mod journal;
pub(crate) mod pack;
pub mod parts;
pub mod places;
mod table;

pub use disk::write_atomically;
pub use folder::{Damage, FolderState, Provenance};
pub use journal::Journals;
pub use parts::Tiling;
pub use places::Places;
pub use table::Answers;
pub(crate) use table::{Encoded, csv};
