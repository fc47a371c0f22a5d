//! Benchmarks as task programs, under the real programs' names, options and metrics.
//!
//! One file per program, which is also its documentation ([`About`]). Adding one: a file with its `Entry`, a line in
//! [`all`], its counts in `tests/catalogue.rs`.

mod about;
mod audio;
mod cyclictest;
mod daytrader;
mod dispatch;
mod forked;
mod frames;
mod hackbench;
mod hhvm;
mod hog;
mod kernbench;
mod limit;
mod lmbench;
mod lmbench_stream;
mod messaging;
mod metric;
mod nas;
mod netperf;
mod nginx;
mod openmp;
mod option;
mod perf_futex;
mod perf_futex_rate;
mod perf_futex_wake;
mod perf_messaging;
mod perf_pipe;
mod perf_seccomp_notify;
mod pgbench;
mod schbench;
mod schbench_v1;
mod schbench_v1_auto_rps;
mod schbench_v1_rps;
mod service;
mod specjbb;
mod starve;
mod stream;
mod stress_ng;
mod stress_ng_aio;
mod stress_ng_context;
mod stress_ng_cpu;
mod stress_ng_exec;
mod stress_ng_fork;
mod stress_ng_futex;
mod stress_ng_memory;
mod stress_ng_mmap;
mod stress_ng_nanosleep;
mod stress_ng_pipe;
mod stress_ng_sem;
mod stress_ng_sock;
mod stress_ng_switch;
mod stress_ng_vm;
mod sysbench;
mod sysbench_cpu;
mod sysbench_memory;
mod sysbench_mutex;
mod sysbench_threads;
mod unixbench;
mod unixbench_shell;
mod video;
mod wake_list;

use crate::Workload;
use schedlab_model::closest;

pub use about::{About, Parameter, Quantity};
pub use metric::MetricSpec;
pub(crate) use option::Settings;
pub use option::{time_of, BuildError, OptionKind, OptionSpec, OptionValue, Preset, TimeUnit, Where};

/// When a program comes to an end of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// Always.
    Always,
    /// When one of these options is set.
    With(&'static [&'static str]),
    /// Never.
    Never,
}

/// A program of the catalogue.
pub struct Entry {
    /// Its id.
    pub id: &'static str,
    /// What it is, in one line of a terminal with the id in front.
    pub summary: &'static str,
    /// Its structure, its numbers with their sources, what is simplified.
    pub about: About,
    /// Its long options.
    pub options: &'static [OptionSpec],
    /// The metrics it may report; which of them depends on the options.
    pub metrics: &'static [MetricSpec],
    /// When it ends by itself.
    pub ends: Ends,
    /// Builds it.
    build: fn(&Settings<'_>) -> Result<Workload, BuildError>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Every program.
#[must_use]
pub fn all() -> &'static [&'static Entry] {
    &[
        &hackbench::ENTRY,
        &perf_messaging::ENTRY,
        &perf_pipe::ENTRY,
        &perf_pipe::ENTRY_6_15,
        &perf_futex_rate::HASH,
        &perf_futex_wake::WAKE,
        &perf_futex_wake::WAKE_PARALLEL,
        &perf_futex_wake::REQUEUE,
        &perf_futex_rate::LOCK_PI,
        &perf_seccomp_notify::ENTRY,
        &schbench::ENTRY,
        &schbench::ENTRY_2020,
        &schbench_v1::ENTRY,
        &cyclictest::ENTRY,
        &stress_ng_cpu::ENTRY,
        &stress_ng_switch::ENTRY,
        &stress_ng_fork::ENTRY,
        &stress_ng_futex::ENTRY,
        &stress_ng_nanosleep::ENTRY,
        &stress_ng_sem::ENTRY,
        &stress_ng_context::ENTRY,
        &stress_ng_aio::ENTRY,
        &stress_ng_pipe::ENTRY,
        &stress_ng_mmap::ENTRY,
        &stress_ng_vm::ENTRY,
        &stress_ng_exec::ENTRY,
        &stress_ng_sock::ENTRY,
        &sysbench_cpu::ENTRY,
        &sysbench_threads::ENTRY,
        &sysbench_mutex::ENTRY,
        &sysbench_memory::ENTRY,
        &hhvm::ENTRY,
        &daytrader::ENTRY,
        &pgbench::ENTRY,
        &nginx::ENTRY,
        &netperf::TCP_RR,
        &netperf::UDP_RR,
        &kernbench::ENTRY,
        &unixbench::EXECL,
        &unixbench::CONTEXT1,
        &unixbench::SPAWN,
        &unixbench::SYSCALL,
        &unixbench::PIPE,
        &unixbench_shell::ENTRY,
        &lmbench::LAT_PROC,
        &lmbench::LAT_PIPE,
        &lmbench::LAT_UNIX,
        &lmbench::LAT_SEM,
        &lmbench::LAT_CTX,
        &lmbench::LAT_SELECT,
        &lmbench::LAT_SYSCALL,
        &lmbench_stream::ENTRY,
        &stream::ENTRY,
        &nas::ENTRY,
        &specjbb::ENTRY,
        &video::ENTRY,
        &audio::ENTRY,
        &frames::ENTRY,
        &starve::ENTRY,
        &hog::ENTRY,
    ]
}

/// The program of this id.
pub fn find(id: &str) -> Result<&'static Entry, BuildError> {
    all().iter().copied().find(|entry| entry.id == id).ok_or_else(|| {
        let ids: Vec<&str> = all().iter().map(|entry| entry.id).collect();
        let near = closest(id, ids.iter().copied());
        BuildError::new("use", format!("there is no workload `{id}`"))
            .expected(format!("one of {}", ids.join(", ")))
            .nearest(near)
    })
}

/// The workload of a program with these options; the rest take their defaults.
///
/// `repeat` restarts a program that ends by itself, for ever and with fresh tasks, as background load.
pub fn build(
    id: &str,
    options: &[(String, OptionValue, Where)],
    name: &str,
    repeat: bool,
    nr_cpus: usize,
) -> Result<Workload, BuildError> {
    let entry = find(id)?;
    let settings = Settings::read(entry, options, name, repeat, nr_cpus)?;
    let ends = match entry.ends {
        Ends::Always => true,
        Ends::With(keys) => keys.iter().any(|key| settings.is_set(key)),
        Ends::Never => false,
    };
    if repeat && !ends {
        let why = match entry.ends {
            Ends::With(keys) => format!("{id} ends by itself only with {}", keys.join(" or ")),
            _ => format!("{id} never ends by itself"),
        };
        return Err(BuildError::new("repeat", why).expected("repeat = false, or no repeat"));
    }
    (entry.build)(&settings)
}
