//! Selects the CPU on which a waking task needs the least energy (`find_energy_efficient_cpu`), as long as no CPU is
//! overutilized.
//!
//! Candidates are the CPU with the most spare capacity of each performance domain, and the previous CPU. The cost of a
//! candidate is the energy of its domain with the task minus the energy without it (`core::perf_table`). The candidate
//! with the lowest cost is selected, in a tie the previous CPU.

use schedlab_model::{CpuId, TaskId};

use crate::candidate::{Candidate, Role};
use crate::core::fits_capacity::fits_capacity;
use crate::core::perf_table::PerfTable;
use crate::core::types::Tested;
use crate::fair::class::FairClass;
use crate::features::Feature;
use crate::pelt::series::CAPACITY_SCALE;
use crate::select::select_rule::{SelectRule, Selected};

/// What the candidates of a performance domain have to spare.
#[derive(Clone, Copy, Default)]
struct SpareCapacities {
    prev_spare: Option<u64>,
    most_spare: Option<(u64, CpuId)>,
}

impl FairClass<'_> {
    /// `find_energy_efficient_cpu`; `None`: energy does not decide the placement.
    pub(crate) fn find_energy_efficient_cpu(
        &mut self,
        task: TaskId,
        prev: CpuId,
        tested: &mut Tested,
    ) -> Option<Selected> {
        let asym = self.core.asym.as_ref()?;
        if asym.is_rd_overutilized() {
            return None;
        }
        let from = self.core.domains.asym_level(tested.from())?;
        let level = (from..self.core.domains.depth(tested.from()))
            .find(|level| self.core.domains.at(tested.from(), *level).span.has(prev))?;
        self.fair.sync_entity_load_avg(task);
        if self.fair.task_util_est(task) == 0 {
            return Some((prev, SelectRule::NoUtilisation));
        }
        let mut best = (u64::MAX, prev);
        let (mut prev_delta, mut best_fits) = (None, false);
        let tables = self.core.asym.as_ref().map_or(&[][..], |asym| &asym.perf_tables);
        for table in tables {
            let found = self.candidates(task, prev, tested.from(), level, table, tested);
            if found.prev_spare.is_none() && found.most_spare.is_none() {
                continue;
            }
            let base = self.energy(task, None, table);
            if found.prev_spare.is_some() {
                // The kernel aborts if utilisation changes meanwhile; here nothing changes during the computation.
                let delta = self.energy(task, Some(prev), table).saturating_sub(base);
                self.explain_energy(prev, Role::Previous, delta, tested);
                prev_delta = Some(delta);
                best.0 = best.0.min(delta);
            }
            let Some((_, cpu)) = found.most_spare.filter(|(most, _)| found.prev_spare.is_none_or(|prev| *most > prev))
            else {
                continue;
            };
            let delta = self.energy(task, Some(cpu), table).saturating_sub(base);
            self.explain_energy(cpu, Role::MostSpare, delta, tested);
            if !best_fits || delta < best.0 {
                (best, best_fits) = ((delta, cpu), true);
            }
        }
        let better = best_fits && prev_delta.is_none_or(|prev| best.0 < prev);
        let (cpu, rule) = if better { (best.1, SelectRule::LeastEnergy) } else { (prev, SelectRule::PrevEnergy) };
        tested.consider(|| Candidate::of("find_energy_efficient_cpu", cpu, Role::OfGroup, "least energy: chosen"));
        Some((cpu, rule))
    }

    /// The previous CPU and the CPU with the most spare capacity, if the task fits there.
    fn candidates(
        &self,
        task: TaskId,
        prev: CpuId,
        this: CpuId,
        level: usize,
        table: &PerfTable,
        tested: &mut Tested,
    ) -> SpareCapacities {
        let span = &self.core.domains.at(this, level).span;
        let mut found = SpareCapacities::default();
        for &cpu in table.cpus.iter().filter(|cpu| span.has(**cpu) && self.core.allows(task, **cpu)) {
            tested.add_load(&self.core.topology, cpu);
            let (util, capacity) = (self.cpu_util(cpu, task, Some(cpu), false), self.capacity_of(cpu));
            if !fits_capacity(util, capacity) {
                continue;
            }
            let spare = capacity.saturating_sub(util);
            if cpu == prev {
                found.prev_spare = Some(spare);
            } else if found.most_spare.is_none_or(|(most, _)| spare > most) {
                found.most_spare = Some((spare, cpu));
            }
        }
        found
    }

    /// `compute_energy` of a performance domain, with the task on one of its CPUs or on none.
    fn energy(&self, task: TaskId, dst: Option<CpuId>, table: &PerfTable) -> u64 {
        let Some(&first) = table.cpus.first() else { return 0 };
        let capacity = u64::from(self.core.topology.capacity(first));
        let whole = capacity * table.cpus.len() as u64;
        let mut busy: u64 =
            table.cpus.iter().map(|cpu| self.effective_cpu_util(*cpu, self.cpu_util(*cpu, task, None, false))).sum();
        busy = busy.min(whole);
        if dst.is_some() {
            busy = (busy + self.eenv_task_busy_time(task)).min(whole);
        }
        let boost = self.core.rules.runnable_boost;
        let requested = |cpu: &CpuId| {
            let util = self.effective_cpu_util(*cpu, self.cpu_util(*cpu, task, dst, boost));
            let own = u64::from(self.core.topology.capacity(*cpu));
            // schedutil requests a quarter more than is used, and the maximum while a real-time task runs.
            let full = self.core.rqs[cpu.index()].rt_runs;
            if full {
                own
            } else {
                (util + (util >> 2)).min(own)
            }
        };
        let max_util = table.cpus.iter().map(requested).max().unwrap_or(0).min(capacity);
        table.em_cpu_energy(max_util, busy)
    }

    /// `eenv_task_busy_time`: the utilisation of the task, reduced by the share of its previous CPU that interrupts
    /// take.
    fn eenv_task_busy_time(&self, task: TaskId) -> u64 {
        let prev = self.core.cpu_of(task);
        let whole = u64::from(self.core.topology.capacity(prev));
        let irq = u64::from(self.core.rqs[prev.index()].avg_irq.util_avg);
        if irq >= whole {
            return whole;
        }
        self.fair.task_util_est(task) * (whole - irq) / whole
    }

    /// `effective_cpu_util`: the utilisation with that of the other classes and of interrupts.
    fn effective_cpu_util(&self, cpu: CpuId, util: u64) -> u64 {
        let rq = &self.core.rqs[cpu.index()];
        let (whole, irq) = (u64::from(self.core.topology.capacity(cpu)), u64::from(rq.avg_irq.util_avg));
        let util = util + u64::from(rq.avg_rt.util_avg);
        if irq >= whole || util >= whole {
            return whole;
        }
        (util * (whole - irq) / whole + irq).min(whole)
    }

    /// `cpu_util` (`cpu_util_next` up to 6.4): the utilisation of a CPU if the waking task went to `dst`.
    fn cpu_util(&self, cpu: CpuId, task: TaskId, dst: Option<CpuId>, boost: bool) -> u64 {
        let (avg, own) = (&self.fair.rq(cpu).pelt.avg, &self.fair.entity(task).avg);
        let (arrives, was_here) = (dst == Some(cpu), self.core.cpu_of(task) == cpu);
        let moved = |sum: u64, part: u64| match (arrives, was_here) {
            (true, false) => sum + part,
            (false, true) => sum.saturating_sub(part),
            _ => sum,
        };
        let mut util = moved(u64::from(avg.util_avg), u64::from(own.util_avg));
        if boost {
            util = util.max(moved(avg.runnable_avg, own.runnable_avg));
        }
        if self.fair.config.has(Feature::UtilEst) {
            let expected = u64::from(self.fair.config.rules.pelt.util_est._task_util_est(own));
            util = util.max(u64::from(avg.util_est) + if arrives { expected } else { 0 });
        }
        util.min(u64::from(self.core.topology.capacity(cpu)))
    }

    fn explain_energy(&self, cpu: CpuId, role: Role, delta: u64, tested: &mut Tested) {
        // In microwatts times utilisation, of which 1,024 is a whole CPU.
        let numbers = [("more power, uW", (delta / CAPACITY_SCALE) as i64)];
        tested.consider(|| Candidate::of("find_energy_efficient_cpu", cpu, role, "candidate").with(numbers));
    }
}
