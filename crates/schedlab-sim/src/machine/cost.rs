//! Costs as drawn: each preset distribution becomes a table of 256 quantiles, each draw one table look-up.

use schedlab_model::{Nanos, Stream};
use schedlab_spec::Costs;
use schedlab_workload::Dist;

/// Quantiles kept of each distribution: the finest step of a drawn cost is 1/256 of the probability.
const QUANTILES: usize = 256;

/// One cost, ready to draw.
#[derive(Clone, Debug)]
pub struct CostTable {
    values: Box<[u32; QUANTILES]>,
}

impl CostTable {
    /// Tabulates the distribution; with `noise` off every draw is its typical value. Values above 4.29 s are cut.
    #[must_use]
    pub fn new(dist: &Dist, noise: bool) -> Self {
        let cut = |ns: Nanos| ns.min(u64::from(u32::MAX)) as u32;
        let mut values = Box::new([cut(dist.typical()); QUANTILES]);
        match dist {
            Dist::Constant(_) => {}
            _ if !noise => {}
            Dist::Quantiles(_) | Dist::Uniform { .. } => {
                for (i, value) in values.iter_mut().enumerate() {
                    *value = cut(dist.quantile((2 * i as u64 + 1) * 1_000_000 / (2 * QUANTILES as u64)));
                }
            }
            _ => {
                let mut rng = schedlab_model::stream(0, "cost table");
                let mut sample: Vec<Nanos> = (0..QUANTILES * 64).map(|_| dist.draw(&mut rng)).collect();
                sample.sort_unstable();
                values.iter_mut().enumerate().for_each(|(i, v)| *v = cut(sample[i * 64 + 32]));
            }
        }
        CostTable { values }
    }

    /// Whether it costs nothing.
    #[inline]
    pub fn is_nothing(&self) -> bool {
        self.values[QUANTILES - 1] == 0
    }

    /// One draw of a cost that many machines do not have: nothing is drawn where there is nothing to draw.
    #[inline]
    pub fn draw_any(&self, dice: &mut Dice) -> Nanos {
        if self.is_nothing() {
            0
        } else {
            self.draw_apart(dice)
        }
    }

    /// A draw that is not inlined.
    #[inline(never)]
    fn draw_apart(&self, dice: &mut Dice) -> Nanos {
        self.draw(dice)
    }

    /// One draw.
    #[inline]
    pub fn draw(&self, dice: &mut Dice) -> Nanos {
        Nanos::from(self.values[dice.roll() as usize])
    }
}

/// A random stream handed out a byte at a time: one word serves eight draws.
#[derive(Clone, Debug)]
pub struct Dice {
    stream: Stream,
    /// The bytes of one word of the stream, and which of them is next.
    bytes: [u8; 8],
    next: usize,
}

impl Dice {
    /// Dice on a stream.
    #[must_use]
    pub fn new(stream: Stream) -> Self {
        Dice { stream, bytes: [0; 8], next: 8 }
    }

    #[inline]
    fn roll(&mut self) -> u8 {
        match self.bytes.get(self.next) {
            Some(byte) => {
                self.next += 1;
                *byte
            }
            None => self.refill(),
        }
    }

    /// The first byte of the next word.
    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> u8 {
        self.bytes = self.stream.next_u64().to_le_bytes();
        self.next = 1;
        self.bytes[0]
    }
}

macro_rules! tables {
    ($($single:ident),* ; $($array:ident),*) => {
        /// The costs of [`Costs`] that events draw, tabulated.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // the fields are those of `Costs`, documented there
        pub struct CostTables {
            $(pub $single: CostTable,)*
            $(pub $array: [CostTable; 5],)*
        }

        impl CostTables {
            /// Tabulates a machine's costs.
            #[must_use]
            pub fn new(costs: &Costs, noise: bool) -> Self {
                CostTables {
                    $($single: CostTable::new(&costs.$single, noise),)*
                    $($array: costs.$array.each_ref().map(|dist| CostTable::new(dist, noise)),)*
                }
            }
        }
    };
}

tables!(
    syscall, schedule, switch_thread, switch_process, wakeup, wakeup_clock, ipi_send, irq_entry, irq, tick, timer_program, timer_resume,
    pipe_read, pipe_write, pipe_wake, pipe_wait, pipe_resume, socket_receive, socket_send, socket_wake, socket_wait, socket_resume,
    copy_kib, futex_wake, futex_wait, futex_resume, fork_process, fork_thread, start_process, start_thread, exec, exit_process,
    exit_thread, reap_wait, reap, balance_pass, balance_cpu, fault, clear_kib, read_kib,
    mmap, munmap, zap_page, unmap_page, copy_page_table, user_op, vm_exit, vm_exit_nested, idle_hint, tlb_flush;
    scan_cpu, ipi, line_transfer
);

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::stream;

    #[test]
    fn draws_follow_the_preset() {
        let dist = Dist::Quantiles(vec![(0, 100), (500, 200), (1000, 600)]);
        let table = CostTable::new(&dist, true);
        let mut dice = Dice::new(stream(3, "cost"));
        let mut draws: Vec<u64> = (0..10_000).map(|_| table.draw(&mut dice)).collect();
        draws.sort_unstable();
        assert!((190..=210).contains(&draws[5_000]), "median {}", draws[5_000]);
        assert!(draws[0] >= 100 && draws[9_999] <= 600);
    }

    #[test]
    fn without_noise_a_cost_is_its_typical_value() {
        let table = CostTable::new(&Dist::Uniform { low: 10, high: 30 }, false);
        let mut dice = Dice::new(stream(3, "cost"));
        assert!((0..100).all(|_| table.draw(&mut dice) == 20));
    }
}
