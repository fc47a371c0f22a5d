//! All tests of whole runs with their sinks: one binary, since each would contain the whole engine. A file of this
//! folder is a module here.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod ablate;
mod cpu_stat;
mod explain;
mod explain_classes;
mod explain_guests;
mod explain_metric;
mod hold;
mod hotplug;
mod kept;
mod lock_holder;
mod real_time;
mod trace_file;
