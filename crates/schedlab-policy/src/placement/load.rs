//! How loaded and how busy a CPU is: the one place that PELT will replace.
//!
//! Kernel: `cpu_load`, `cpu_util_cfs`, `cpu_runnable`, `task_h_load`, `task_util_est` (kernel/sched/fair.c), all PELT
//! averages. Here instead, until PELT exists:
//! - load of a CPU = sum of the weights queued NOW (blocked tasks and the runnable fraction are left out); load of a
//!   task = its weight;
//! - runnable of a CPU = 1024 per queued task NOW;
//! - utilisation of a CPU = PELT's geometric average (1024 us segments, half-life 32) of "a task runs", kept per CPU
//!   and not per task, so it does not travel with tasks; utilisation of a queued task = an equal share of its CPU's.

use schedlab_model::{CpuId, Nanos, TaskId};

use crate::fair::Fair;

/// Utilisation, load and capacity of one CPU that is always busy with one nice-0 task (`SCHED_CAPACITY_SCALE`).
pub(crate) const CAPACITY_SCALE: u64 = 1024;

/// Largest sum of the series (`LOAD_AVG_MAX`).
const LOAD_AVG_MAX: u64 = 47_742;
/// Halving the sum this often leaves nothing of it.
const LOAD_AVG_PERIOD: u64 = 32;

/// `cpu_load`.
#[inline]
pub(crate) fn cpu_load(fair: &Fair, cpu: CpuId) -> u64 {
    fair.rq(cpu).load.scaled()
}

/// `task_h_load`.
#[inline]
pub(crate) fn task_load(fair: &Fair, task: TaskId) -> u64 {
    fair.entity(task).load.scaled()
}

/// `cpu_runnable` of a CPU with so many tasks.
#[inline]
pub(crate) fn runnable(nr_running: u32) -> u64 {
    u64::from(nr_running) * CAPACITY_SCALE
}

/// How busy each CPU has been.
#[derive(Clone, Debug)]
pub(crate) struct Utilisation {
    cpus: Vec<BusyAverage>,
}

/// The decayed time in which the CPU ran something.
#[derive(Clone, Copy, Debug, Default)]
struct BusyAverage {
    /// End of the accounted time, in 1024 ns.
    last: u64,
    /// Decayed busy time, in 1024 ns.
    sum: u64,
    busy: bool,
}

impl Utilisation {
    pub fn new(nr_cpus: usize) -> Self {
        Utilisation { cpus: vec![BusyAverage::default(); nr_cpus] }
    }

    /// From `now` on the CPU runs something, or nothing.
    #[inline]
    pub fn set_busy(&mut self, cpu: CpuId, busy: bool, now: Nanos) {
        let average = &mut self.cpus[cpu.index()];
        if average.busy != busy {
            average.advance(now);
            average.busy = busy;
        }
    }

    /// `cpu_util_cfs`, 0..=1024.
    pub fn of(&self, cpu: CpuId, now: Nanos) -> u64 {
        let mut average = self.cpus[cpu.index()];
        average.advance(now);
        average.sum * CAPACITY_SCALE / (LOAD_AVG_MAX - CAPACITY_SCALE + average.last % 1024)
    }
}

impl BusyAverage {
    /// `accumulate_sum` for a signal that is either on or off since `last`.
    fn advance(&mut self, now: Nanos) {
        let end = now >> 10;
        if end <= self.last {
            return;
        }
        let (first, last) = (self.last / 1024, end / 1024);
        let crossed = last - first;
        let delta = end - self.last;
        if crossed == 0 {
            self.sum += if self.busy { delta } else { 0 };
        } else {
            self.sum = decay(self.sum, crossed);
            if self.busy {
                let head = decay(1024 - self.last % 1024, crossed);
                let whole = LOAD_AVG_MAX - decay(LOAD_AVG_MAX, crossed) - 1024;
                self.sum += head + whole + end % 1024;
            }
        }
        self.last = end;
    }
}

/// `decay_load`: `value * y^n` with y^32 = 1/2.
fn decay(value: u64, n: u64) -> u64 {
    if n > LOAD_AVG_PERIOD * 63 {
        return 0;
    }
    let halved = value >> (n / LOAD_AVG_PERIOD);
    (halved * u64::from(Y_POWERS[(n % LOAD_AVG_PERIOD) as usize])) >> 32
}

/// `2^32 * y^n` (`runnable_avg_yN_inv`).
const Y_POWERS: [u32; 32] = [
    0xffffffff, 0xfa83b2da, 0xf5257d14, 0xefe4b99a, 0xeac0c6e6, 0xe5b906e6, 0xe0ccdeeb, 0xdbfbb796, 0xd744fcc9,
    0xd2a81d91, 0xce248c14, 0xc9b9bd85, 0xc5672a10, 0xc12c4cc9, 0xbd08a39e, 0xb8fbaf46, 0xb504f333, 0xb123f581,
    0xad583ee9, 0xa9a15ab4, 0xa5fed6a9, 0xa2704302, 0x9ef5325f, 0x9b8d39b9, 0x9837f050, 0x94f4efa8, 0x91c3d373,
    0x8ea4398a, 0x8b95c1e3, 0x88980e80, 0x85aac367, 0x82cd8698,
];

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::MSEC;

    #[test]
    fn y_powers_halve_every_32_steps() {
        for (n, power) in Y_POWERS.iter().enumerate() {
            let exact = 2f64.powi(32) * 0.5f64.powf(n as f64 / 32.0);
            assert!((f64::from(*power) - exact).abs() <= 2.0, "y^{n}");
        }
    }

    #[test]
    fn utilisation_rises_and_falls_with_a_half_life_of_32_segments() {
        let cpu = CpuId(0);
        let mut util = Utilisation::new(1);
        util.set_busy(cpu, true, 0);
        // 32 segments of 1024 * 1024 ns.
        let half_life = 32 << 20;
        let table = [(0, 0), (half_life, 512), (2 * half_life, 768), (100 * half_life, 1024)];
        for (now, expected) in table {
            assert!(util.of(cpu, now).abs_diff(expected) <= 12, "busy until {now}: {}", util.of(cpu, now));
        }
        util.set_busy(cpu, false, 100 * half_life);
        assert!(util.of(cpu, 101 * half_life).abs_diff(512) <= 12);
        assert_eq!(util.of(cpu, 200 * half_life), 0);
    }

    #[test]
    fn reading_does_not_change_what_is_read_later() {
        let cpu = CpuId(0);
        let (mut often, mut once) = (Utilisation::new(1), Utilisation::new(1));
        for step in 0..200u64 {
            let now = step * MSEC * 3 / 7;
            often.set_busy(cpu, step % 3 != 0, now);
            once.set_busy(cpu, step % 3 != 0, now);
            let _ = often.of(cpu, now + MSEC);
        }
        assert_eq!(often.of(cpu, 90 * MSEC), once.of(cpu, 90 * MSEC));
    }
}
