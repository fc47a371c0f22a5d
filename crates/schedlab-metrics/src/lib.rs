//! Streaming reductions over trace events: the only place where the numbers of a run are computed.
//!
//! [`Metrics`] is a [`schedlab_trace::Sink`] that reduces events to a [`Report`]. Simulated and recorded runs use the
//! same code. Memory grows with the number of tasks and CPUs, never with the number of events.
//!
//! ```
//! use schedlab_metrics::{Metrics, Plan};
//! use schedlab_model::{CpuId, MSEC};
//! use schedlab_trace::{Event, Kind, Sink, TaskState};
//!
//! let mut metrics = Metrics::new(Plan { nr_cpus: 1, ..Plan::default() });
//! // Task 10 runs for 3 ms and sleeps.
//! let (prio, cpu) = (120, CpuId(0));
//! for (time, prev, prev_state, next) in [(0, 0, TaskState::Running, 10), (3 * MSEC, 10, TaskState::Sleeping, 0)] {
//!     let kind = Kind::Switch { prev, prev_prio: prio, prev_state, next, next_prio: prio };
//!     metrics.event(&Event::new(time, cpu, kind));
//! }
//! let report = metrics.finish(4 * MSEC);
//! assert_eq!(report.metric("sched.switches"), Some(2.0));
//! assert_eq!(report.metric("sched.cpu_busy"), Some(75.0));
//! ```

mod catalogue;
mod guest;
mod histogram;
mod idle;
mod parts;
mod per_second;
mod pids;
mod plan;
mod report;
mod searches;
mod sink;
mod state;
mod tasks;

pub use catalogue::{sched_metrics, SchedMetric};
pub use guest::{guest_metrics, GuestMetric, GuestTotals, GuestWakeups};
pub use histogram::{bucket_end, Histogram, Stat};
pub use idle::Cause;
pub use plan::{MetricEntry, Plan};
pub use report::{list_tasks, CpuReport, Report, Series, TaskReport};
pub use state::Metrics;
