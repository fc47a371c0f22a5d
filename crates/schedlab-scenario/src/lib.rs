//! Scenario and machine files: the text is validated down to the last key and becomes an immutable [`Scenario`].
//!
//! A scenario provides the specification of every run of a comparison ([`Scenario::run_spec`]). Invalid input results in one
//! [`ScenarioError`] that names the file, the line, the key, what was expected and the nearest valid name.

mod arm;
mod attribute_values;
mod attributes;
mod cgroup;
mod describe;
mod dist;
mod error;
mod fits;
mod keys;
mod listing;
mod machine;
mod metric;
mod naming;
mod option_default;
mod overrides;
mod program;
mod rt_app;
mod scenario;
mod source;
mod study;
mod text;
mod units;
mod value;
mod variant;
mod workload;

pub use error::{Result, ScenarioError};
pub use keys::{Key, Section, SECTIONS};
pub use listing::listing;
pub use machine::preset;
pub use metric::{Metric, DEFAULT_MARGIN_PCT};
pub use overrides::{Overrides, Seeds};
pub use scenario::{Scenario, Variant};
pub use study::{Study, StudyOptions, STUDY_SECTIONS};
pub use workload::Program;
