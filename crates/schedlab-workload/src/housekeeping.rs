//! The kernel's periodic threads on an otherwise idle system, as a workload.
//!
//! | thread | period | run time: kernel and command |
//! |---|---|---|
//! | `kworker/N:1`, `vmstat_update` | 1 s (`sysctl_stat_interval`, mm/vmstat.c), deferrable | 6.18.44, below |
//! | `kworker/0:0`, `vmstat_shepherd` | the same; looks at every CPU | 6.18.44, two CPUs, below |
//! | `migration/N`, woken by `watchdog_timer_fn` | 4 s: `watchdog_thresh` 10 s, times 2/5 (kernel/watchdog.c) | 6.18.44 |
//! | `kcompactd` of a node | 500 ms (`HPAGE_FRAG_CHECK_INTERVAL_MSEC`, mm/compaction.c), from 5.9 on | 6.18.44 |
//! | `kworker/u`, `flush_memcg_stats_dwork` | 2 s (`FLUSH_TIME`, mm/memcontrol.c), deferrable, from 5.15 on | 6.18.44 |
//!
//! Run times are stays on the CPU between two `sched_switch` events, in which a kworker executed nothing but that
//! function (`workqueue_execute_start`), traced for 60 s on a virtual machine with two CPUs under load, x86-64,
//! 6.18.44. Its host took CPU time away, so stays longer than the last quantile are left out. The periods were checked
//! on an idle 6.12.117 in QEMU: `schedlab record --kernel 6.12 --cpus 2 --no-probes -- sleep 40` has 0.25 stays a
//! second of each `migration/N`, 1.97 of kcompactd, 1.07 and 0.80 of the two CPUs' kworkers, 0.60 of unbound ones.
//!
//! Left out, because something else decides how often they run: the grace-period kthread of RCU (0.17 stays a second in
//! the idle guest, 37 on the loaded machine), ksoftirqd, writeback, khugepaged, `psi_avgs_work`, the drivers' work,
//! daemons.

use schedlab_model::{CpuId, CpuMask, Nanos, Topology, MSEC, SEC, USEC};

use crate::build::{Builder, Code};
use crate::{Dist, Op, Policy, TaskSpec, Timers, Workload};

/// The name of the workload.
pub const NAME: &str = "housekeeping";

const VMSTAT: [u64; 5] = [9, 14, 18, 27, 40];
const SHEPHERD: [u64; 5] = [8, 10, 11, 13, 18];
const WATCHDOG: [u64; 5] = [5, 8, 10, 21, 30];
const COMPACTION: [u64; 5] = [7, 9, 12, 16, 19];
const MEMCG: [u64; 5] = [21, 30, 38, 54, 68];

/// What differs from machine to machine and from kernel to kernel.
#[derive(Clone, Copy, Debug)]
pub struct Housekeeping<'a> {
    /// The machine's CPUs.
    pub topology: &'a Topology,
    /// What `vmstat_shepherd` spends on each CPU.
    pub shepherd_cpu: Nanos,
    /// Proactive compaction: 5.9 and later.
    pub compacts: bool,
    /// The memory controller's statistics are flushed periodically: 5.15 and later.
    pub flushes_memcg: bool,
}

impl Housekeeping<'_> {
    /// The threads. They never end, and have no metric. The sleep with which each program begins is under way at the
    /// start.
    #[must_use]
    pub fn workload(&self) -> Workload {
        let mut builder = Builder::new(NAME);
        let cpus = || self.topology.all().iter();
        let thread = |name: String, timers: Timers, affinity: Option<CpuMask>| TaskSpec {
            name,
            timers,
            timer_slack: 0,
            jitter: false,
            affinity,
            ..TaskSpec::default()
        };
        let vmstat = program(&mut builder, "vmstat_update", SEC, VMSTAT, 0);
        let watchdog = program(&mut builder, "watchdog", 4 * SEC, WATCHDOG, 0);
        for cpu in cpus() {
            let only = Some(CpuMask::from_iter([cpu]));
            builder
                .task(TaskSpec { program: vmstat, ..thread(format!("kworker/{}:1", cpu.0), Timers::Deferrable, only) });
            // The policy is what sched_set_stop_task makes user space see.
            let (policy, stopper) = (Policy::Fifo(99), true);
            builder.task(TaskSpec {
                program: watchdog,
                policy,
                stopper,
                ..thread(format!("migration/{}", cpu.0), Timers::Hrtimer, only)
            });
        }
        let walk = self.shepherd_cpu.saturating_mul(self.topology.nr_cpus() as u64);
        let shepherd = program(&mut builder, "vmstat_shepherd", SEC, SHEPHERD, walk);
        let boot = Some(CpuMask::from_iter([CpuId(0)]));
        builder.task(TaskSpec { program: shepherd, ..thread("kworker/0:0".into(), Timers::Deferrable, boot) });
        if self.compacts {
            let compaction = program(&mut builder, "kcompactd", 500 * MSEC, COMPACTION, 0);
            let first_of_node = |cpu: &CpuId| self.topology.node(*cpu).lowest() == Some(*cpu);
            for (node, cpu) in cpus().filter(first_of_node).enumerate() {
                let own = Some(*self.topology.node(cpu));
                builder
                    .task(TaskSpec { program: compaction, ..thread(format!("kcompactd{node}"), Timers::Wheel, own) });
            }
        }
        if self.flushes_memcg {
            let memcg = program(&mut builder, "flush_memcg_stats_dwork", 2 * SEC, MEMCG, 0);
            builder.task(TaskSpec { program: memcg, ..thread("kworker/u:0".into(), Timers::Deferrable, None) });
        }
        let mut workload = builder.finish(false);
        workload.kernel_threads = true;
        workload
    }
}

/// A thread that runs for a stay of these quantiles (us) and `more` ns in every period, from a drawn phase on.
fn program(builder: &mut Builder, name: &str, period: Nanos, stay: [u64; 5], more: Nanos) -> u32 {
    const PER_MILLE: [u16; 5] = [0, 100, 500, 900, 1000];
    let quantiles = PER_MILLE.into_iter().zip(stay.map(|us| us * USEC + more)).collect();
    let phase = builder.amount(Dist::Uniform { low: 0, high: period - 1 });
    let stay = builder.amount(Dist::Quantiles(quantiles));
    // The registers of the loop: the next expiry, now, and how long after the former the latter is.
    const NEXT: u8 = 0;
    const NOW: u8 = 1;
    const LATE: u8 = 2;
    let step = i64::try_from(period).unwrap_or(i64::MAX);
    let mut code = Code::default();
    code.op(Op::Sleep(phase));
    code.op(Op::Clock(NEXT));
    let top = code.here();
    code.op(Op::System(stay));
    code.op(Op::Clock(NOW));
    // A period that passed while the CPU was idle is not made up for.
    let skip = code.here();
    code.op(Op::AddConst(NEXT, step));
    code.op(Op::Copy { into: LATE, from: NEXT });
    code.op(Op::SubReg { into: LATE, from: NOW });
    code.jump_below(LATE, 0, skip);
    code.op(Op::SleepUntil(NEXT));
    code.jump(top);
    builder.program(name, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nr_cpus: usize, compacts: bool) -> Workload {
        let topology = Topology::regular(2, 1, nr_cpus as u32 / 2, 1, true).unwrap();
        Housekeeping { topology: &topology, shepherd_cpu: 50, compacts, flushes_memcg: true }.workload()
    }

    #[test]
    fn every_cpu_has_its_two_threads_and_every_node_one() {
        let workload = of(8, true);
        let named = |prefix: &str| workload.tasks.iter().filter(|task| task.name.starts_with(prefix)).count();
        assert_eq!((named("kworker/"), named("migration/"), named("kcompactd")), (10, 8, 2));
        assert!(workload.kernel_threads && !workload.ends && workload.metrics.is_empty());
        assert_eq!(of(8, false).tasks.len(), workload.tasks.len() - 2);
    }

    #[test]
    fn per_cpu_threads_stay_on_their_cpu() {
        for task in of(4, true).tasks.iter().filter(|task| task.name.starts_with("migration/")) {
            let cpu: u32 = task.name["migration/".len()..].parse().unwrap();
            assert_eq!(task.affinity.map(|mask| mask.to_list()), Some(cpu.to_string()));
        }
    }
}
