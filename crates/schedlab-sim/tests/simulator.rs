//! All tests of whole runs: one binary, since each would contain the whole simulator. A file of this folder is a module
//! here.
#![allow(clippy::unwrap_used)]

mod support;

mod auto_rps;
mod bandwidth;
mod capacity;
mod clock_event;
mod cpuidle;
mod cpusets;
mod deadline;
mod failures;
mod frequency;
mod golden;
mod group_lines;
mod groups;
mod guests;
mod hotplug;
mod housekeeping;
mod major_faults;
mod memory;
mod mmap_lock;
mod newidle;
mod nohz;
mod numa;
mod phases;
mod physics;
mod pi_futex;
mod pipe_mutex;
mod preemption;
mod refill;
mod remote;
mod rseq;
mod sched_cache;
mod settings;
mod spinlock;
mod stress_ng;
mod swarm;
mod ties;
mod tlb;
mod warmth;
mod worlds;
