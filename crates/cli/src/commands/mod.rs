//! One small file per command; no physics here.

pub(crate) mod check;
pub(crate) mod cite;
pub(crate) mod compute;
#[cfg(feature = "explore")]
pub(crate) mod explore;
pub(crate) mod list;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod sweep;
pub(crate) mod verify;
