//! Scenario and machine files: the text is validated down to the last key and becomes an immutable [`Scenario`].
//!
//! A scenario provides the specification of every run of a comparison ([`Scenario::run_spec`]). Invalid input results
//! in one [`ScenarioError`] that names the file, the line, the key, what was expected and the nearest valid name.
//!
//! ```
//! use schedlab_scenario::Scenario;
//!
//! let text = r#"
//! machine = "laptop-8"
//! duration = "100ms"
//! workload = [{ use = "hog", threads = 2 }]
//! variant = [{ name = "old", kernel = "6.1" }, { name = "new", kernel = "6.12.107", hz = 1000 }]
//! "#;
//! let scenario = Scenario::parse(text, "example.toml", None)?;
//! let spec = scenario.run_spec("new", 1)?;
//! assert_eq!((spec.kernel.version.name, spec.kernel.hz()), ("6.12.107", 1000));
//! assert_eq!(spec.machine.topology.nr_cpus(), 8);
//!
//! let error = Scenario::parse(&text.replace("hog", "hig"), "example.toml", None).unwrap_err();
//! assert_eq!(error.to_string(), "example.toml:4:21: workload.use: unknown workload \"hig\"");
//! assert_eq!(error.hint.as_deref(), Some("did you mean \"hog\"?"));
//! # Ok::<(), Box<schedlab_scenario::ScenarioError>>(())
//! ```

mod arm;
mod attribute_values;
mod attributes;
mod cgroup;
mod changes;
mod cross_checks;
mod describe;
mod dist;
mod distribution;
mod error;
mod grouping;
mod guest;
mod hotplug;
mod identity;
mod inactive;
mod kernel_sections;
mod kernel_settings;
mod keys;
mod listing;
mod machine;
mod merge;
mod metric;
mod naming;
mod one_sided;
mod option_default;
mod overrides;
mod own_workloads;
mod program;
mod remote;
mod rt_app;
mod scenario;
mod set;
mod source;
mod study;
mod task_memory;
mod task_memory_checks;
mod text;
mod units;
mod value;
mod variant;
mod workload;
mod write;

pub use changes::changes;
pub use error::{Result, ScenarioError};
pub use identity::identity;
pub use keys::{Key, Section, SECTIONS};
pub use listing::listing;
pub use machine::preset;
pub use metric::{Metric, DEFAULT_MARGIN_PCT};
pub use overrides::{Overrides, Seeds};
pub use scenario::{Scenario, Variant};
pub use set::Set;
pub use study::{Study, StudyOptions, STUDY_SECTIONS};
pub use workload::Program;
