//! The cache that a process prefers (`task_tick_cache`, `task_cache_work`): that in which its threads have run most.
//!
//! The occupancy of a cache is the sum of the shares of its CPUs that the process has had. The cache with the largest
//! one becomes the preferred one if it exceeds twice that of the present one.

use schedlab_model::{CpuId, Nanos, TaskId};

use super::SchedCache;

impl SchedCache {
    /// `task_tick_cache`: the first tick of a process in an epoch queues `task_cache_work` for the running task.
    pub fn task_tick_cache(&mut self, cpu: CpuId, task: TaskId) {
        let state = self.groups.task(task);
        let Some(group) = state.group.filter(|_| self.active) else { return };
        let epoch = self.cpus[cpu.index()].epoch;
        let process = self.groups.group_mut(group);
        if process.epoch >= epoch || state.work {
            return;
        }
        process.epoch = epoch;
        self.groups.task_mut(task).work = true;
    }

    /// Whether `task_cache_work` is due before the task returns to user mode.
    #[inline]
    pub fn has_work(&self, task: TaskId) -> bool {
        self.groups.task(task).work
    }

    /// `task_cache_work` of the task that runs on the CPU. `curr`: the running task of a CPU, unless it exits.
    pub fn task_cache_work(&mut self, cpu: CpuId, task: TaskId, curr: impl Fn(CpuId) -> Option<TaskId>, now: Nanos) {
        self.groups.task_mut(task).work = false;
        let state = self.groups.task(task);
        let Some(group) = state.group else { return };
        let jiffies = self.jiffies(now);
        let process = self.groups.group_mut(group);
        if jiffies < process.next_scan {
            return;
        }
        process.next_scan = jiffies + self.tuning.epoch_period;
        if self.invalid_llc_nr(state, cpu) {
            self.groups.group_mut(group).cpu = None;
            return;
        }
        let preferred = self.groups.group(group).cpu.map(|cpu| self.llc_of[cpu.index()] as usize);
        let (mut most, mut most_cpu, mut present, mut running) = (0, None, 0, 0);
        for (index, llc) in self.llcs.iter().enumerate().filter(|(_, llc)| llc.cpus.len() > 1) {
            let (mut busiest, mut occupancy) = ((0, None), 0);
            for &at in &llc.cpus {
                let rq = &mut self.cpus[at.index()];
                rq.update(jiffies, self.tuning.epoch_period);
                let part = self.groups.group_mut(group).fraction_on(at, rq);
                occupancy += part;
                if part > busiest.0 {
                    busiest = (part, Some(at));
                }
                running += u64::from(curr(at).is_some_and(|curr| self.groups.task(curr).group == Some(group)));
            }
            if occupancy > most {
                (most, most_cpu) = (occupancy, busiest.1);
            }
            if preferred == Some(index) {
                present = occupancy;
            }
        }
        let divisor = (self.llc_size(cpu) / 4).clamp(2, 8);
        let process = self.groups.group_mut(group);
        if most > 2 * present {
            process.cpu = most_cpu;
        }
        process.nr_running_avg = update_avg_scale(process.nr_running_avg, running, divisor);
    }
}

/// `update_avg_scale`: a part of the difference, rounded towards 0.
fn update_avg_scale(avg: u64, sample: u64, divisor: u64) -> u64 {
    avg.wrapping_add_signed((sample as i64 - avg as i64) / divisor as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_of_running_threads_is_rounded_towards_what_it_was() {
        for (avg, sample, divisor, expected) in
            [(0, 1, 2, 0), (0, 2, 2, 1), (1, 2, 2, 1), (4, 0, 2, 2), (1, 0, 2, 1), (0, 64, 8, 8), (9, 1, 8, 8)]
        {
            assert_eq!(update_avg_scale(avg, sample, divisor), expected, "{avg} {sample} {divisor}");
        }
    }
}
