//! Streaming reductions over trace events: the only place where a number about a run is made.
//!
//! [`Metrics`] takes events as a [`schedlab_trace::Sink`] and ends in a [`Report`]; simulated and recorded runs go
//! through the same code. Memory grows with tasks and CPUs, never with events.

mod catalogue;
mod histogram;
mod idle;
mod per_second;
mod pids;
mod plan;
mod report;
mod searches;
mod sink;
mod tasks;

pub use catalogue::{sched_metrics, SchedMetric};
pub use histogram::{Histogram, Stat};
pub use idle::Cause;
pub use plan::{MetricEntry, Plan};
pub use report::{list_tasks, CpuReport, Report, Series, TaskReport};
pub use sink::Metrics;
