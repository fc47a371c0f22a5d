//! The measured sections of system calls: in which parts of a call a preemption model honours a request to reschedule.
//!
//! A position is a share of the call's length, so its time follows from what the call costs on the machine:
//!
//! ```text
//! position in work = work of the call * position in instructions / length in instructions
//! ```
//!
//! - Without kernel preemption these parts are the check points, and the loops that check the flag at every page of a
//!   page table, under its lock.
//! - With it they are everything outside the sections under a spinlock or with interrupts disabled. Interrupts are not
//!   held back in the latter, which are shorter than 3 us.
//! - With sleeping spinlocks they are everything: which locks do not sleep was not measured.

use schedlab_policy::PreemptModel;
use schedlab_spec::CallSections;
use schedlab_trace::Call;

use crate::machine::NS;

/// A part of a call in which a request is honoured, in shares of its length; a check point has no length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Open {
    begin: u32,
    end: u32,
}

/// One is a share of 1.
const SHARE_SHIFT: u32 = 24;

/// The measured calls of a kernel, as its preemption model divides them.
#[derive(Debug, Default)]
pub struct Sections {
    /// By number less 1.
    calls: Vec<Measured>,
    /// By call, from the smallest size to the largest.
    sizes: [Vec<Size>; Call::ALL.len()],
    /// Lengths of a fault that allocates a page, and of one that also drains the batch of new pages; equal if either
    /// was not measured.
    faults: [u64; 2],
}

/// Pages of the batch that the measured fault drains (PAGEVEC_SIZE).
const MEASURED_BATCH: u64 = 31;

/// A size at which a call was measured.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The most bytes to which it applies.
    most: u64,
    /// The number of the measured call; 0: a request is honoured anywhere in it.
    pub number: u8,
    /// The share of the call before its first might_sleep().
    entry: u32,
    /// The share of its longest part in which no request is honoured.
    longest: u32,
}

impl Size {
    /// Of a call that was not measured.
    const UNKNOWN: Size = Size { most: 0, number: 0, entry: 0, longest: 0 };

    /// The longest part in which no request is honoured, of a call that has so much work.
    #[inline(always)]
    pub fn longest_closed(&self, work: u64) -> u64 {
        of(work, self.longest)
    }

    /// The part of the call's work before its first might_sleep(), which in a read or write of a pipe is the one in
    /// `mutex_lock`.
    #[inline]
    pub fn entry(&self, work: u64) -> u64 {
        of(work, self.entry)
    }
}

/// A measured call of some size.
#[derive(Debug)]
struct Measured {
    call: Call,
    open: Vec<Open>,
    /// The share of its longest part in which no request is honoured.
    longest: u32,
}

impl Sections {
    /// The table of a machine under a model.
    pub fn new(table: &[CallSections], model: PreemptModel) -> Self {
        let mut found = Sections { faults: fault_lengths(table), ..Sections::default() };
        for (call, numbered) in Call::ALL.into_iter().zip(&mut found.sizes) {
            let mut sizes: Vec<&CallSections> = table.iter().filter(|measured| measured.call == call.name()).collect();
            sizes.sort_unstable_by_key(|measured| measured.kib);
            for (place, measured) in sizes.iter().enumerate() {
                let open =
                    if model.is_preemptible() { outside_critical(measured, model) } else { points(measured, model) };
                let longest = longest_gap(&open);
                let mut number = 0;
                if longest > 0 && found.calls.len() < usize::from(u8::MAX) {
                    found.calls.push(Measured { call, open, longest });
                    number = found.calls.len() as u8;
                }
                // Half-way to the next size.
                let most = sizes.get(place + 1).map_or(u64::MAX, |next| u64::from(measured.kib + next.kib) << 9);
                let entry = measured.might_sleep.first().map_or(0, |point| shares(measured, *point, *point).begin);
                numbered.push(Size { most, number, entry, longest });
            }
        }
        found
    }

    /// Whether a transfer of a pipe or socket has parts that matter.
    pub fn any_transfer(&self) -> bool {
        self.sizes[..=Call::SocketSend as usize].iter().flatten().any(|size| size.number != 0)
    }

    /// The nearest size to so many bytes at which the call was measured; without a number if it was not.
    #[inline]
    pub fn nearest(&self, call: Call, bytes: u64) -> &Size {
        match &self.sizes[call as usize][..] {
            [smallest, ..] if bytes <= smallest.most => smallest,
            sizes => sizes.iter().find(|size| bytes <= size.most).unwrap_or(&Size::UNKNOWN),
        }
    }

    /// The length of a fault that allocates a page, in instructions.
    pub fn plain_fault(&self) -> u64 {
        self.faults[0]
    }

    /// The length of one that also puts a batch of so many new pages on the lists of reclaim.
    pub fn draining_fault(&self, batch: u32) -> u64 {
        let [plain, draining] = self.faults;
        plain + draining.saturating_sub(plain) * u64::from(batch) / MEASURED_BATCH
    }

    /// The call with a number.
    pub fn call(&self, number: u8) -> Option<Call> {
        Some(self.measured(number)?.call)
    }

    /// The work of its longest part in which no request is honoured, if the call has so much work in total, and which
    /// call it is.
    #[inline(always)]
    pub fn longest_closed(&self, number: u8, total: u64) -> (u64, Option<Call>) {
        self.measured(number).map_or((0, None), |measured| (of(total, measured.longest), Some(measured.call)))
    }

    #[inline(always)]
    fn measured(&self, number: u8) -> Option<&Measured> {
        self.calls.get(usize::from(number).wrapping_sub(1))
    }

    /// The work until the call gets to a part in which a request is honoured, 0 in one; `None` if none follows.
    pub fn until_open(&self, number: u8, total: u64, left: u64) -> Option<u64> {
        let done = total.saturating_sub(left);
        // Times are whole ns, so a point is passed by the work of less than one.
        let next = self.measured(number)?.open.iter().find(|open| of(total, open.end) + NS > done)?;
        Some(of(total, next.begin).saturating_sub(done)).filter(|until| *until < left)
    }
}

fn fault_lengths(table: &[CallSections]) -> [u64; 2] {
    let length =
        |call: Call| table.iter().find(|measured| measured.call == call.name()).map(|found| u64::from(found.length));
    match (length(Call::FaultClear), length(Call::FaultDrain)) {
        (Some(plain), Some(draining)) => [plain, draining],
        _ => [1, 1],
    }
}

/// A share of the work of a call.
#[inline(always)]
fn of(total: u64, share: u32) -> u64 {
    ((u128::from(total) * u128::from(share)) >> SHARE_SHIFT) as u64
}

/// The longest part of a call between those in which a request is honoured.
fn longest_gap(open: &[Open]) -> u32 {
    let (mut longest, mut from) = (0, 0);
    for part in open {
        longest = longest.max(part.begin.saturating_sub(from));
        from = from.max(part.end);
    }
    longest.max((1 << SHARE_SHIFT) - from)
}

/// The check points of a call without kernel preemption, and the loops over page tables.
fn points(measured: &CallSections, model: PreemptModel) -> Vec<Open> {
    let might_sleep: &[u32] = if model.has_might_resched() { &measured.might_sleep } else { &[] };
    let points = measured.cond_resched.iter().chain(might_sleep).map(|point| (*point, *point));
    let mut open: Vec<Open> =
        points.chain(measured.page_table.iter().copied()).map(|(begin, end)| shares(measured, begin, end)).collect();
    open.sort_unstable_by_key(|open| (open.begin, open.end));
    open
}

/// The parts between critical sections.
fn outside_critical(measured: &CallSections, model: PreemptModel) -> Vec<Open> {
    let mut critical = [measured.spinlock.as_slice(), measured.irq_off.as_slice()].concat();
    if model.has_sleeping_locks() {
        critical.clear();
    }
    critical.sort_unstable();
    let mut open = Vec::new();
    let mut from = 0;
    for (begin, end) in critical {
        if begin > from {
            open.push(shares(measured, from, begin));
        }
        from = from.max(end);
    }
    open.push(shares(measured, from, measured.length));
    open
}

fn shares(measured: &CallSections, begin: u32, end: u32) -> Open {
    let length = u64::from(measured.length.max(1));
    let share = |at: u32| ((u64::from(at.min(measured.length)) << SHARE_SHIFT) / length) as u32;
    Open { begin: share(begin), end: share(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Vec<CallSections> {
        let sections = CallSections {
            call: "fork".into(),
            kib: 4,
            length: 1000,
            cond_resched: vec![900],
            might_sleep: vec![100, 950],
            spinlock: vec![(200, 300), (250, 400)],
            irq_off: vec![(500, 550)],
            page_table: vec![(600, 700)],
        };
        vec![CallSections { kib: 64, cond_resched: vec![1], ..sections.clone() }, sections]
    }

    #[test]
    fn requests_wait_for_the_next_part_that_honours_them() {
        // Model, work done of 1000, work until a request is honoured.
        let cases = [
            (PreemptModel::None, 0, Some(600)),
            (PreemptModel::None, 650, Some(0)),
            (PreemptModel::None, 701, Some(199)),
            (PreemptModel::None, 900, Some(0)),
            (PreemptModel::None, 902, None),
            (PreemptModel::Voluntary, 0, Some(100)),
            (PreemptModel::Voluntary, 902, Some(48)),
            (PreemptModel::Full, 0, Some(0)),
            (PreemptModel::Full, 200, Some(0)),
            (PreemptModel::Full, 202, Some(198)),
            (PreemptModel::Lazy, 260, Some(140)),
            (PreemptModel::Full, 510, Some(40)),
            (PreemptModel::Full, 650, Some(0)),
        ];
        for (model, done, until) in cases {
            let sections = Sections::new(&table(), model);
            let number = sections.nearest(Call::Fork, 0).number;
            let found = sections.until_open(number, 1000 * NS, (1000 - done) * NS);
            // A share is rounded down, by less than a ns here.
            let found = found.map(|work| work.div_ceil(NS));
            assert_eq!(found, until, "{model:?} after {done}");
        }
    }

    #[test]
    fn a_call_has_the_sections_of_the_nearest_size() {
        let sections = Sections::new(&table(), PreemptModel::None);
        let first = sections.nearest(Call::Fork, 64 << 10).number;
        for (bytes, same) in [(1 << 20, true), (35 << 10, true), (33 << 10, false), (0, false)] {
            assert_eq!(sections.nearest(Call::Fork, bytes).number == first, same, "{bytes}");
        }
        assert_eq!(sections.nearest(Call::Exec, 0).number, 0);
    }

    #[test]
    fn the_longest_part_without_a_check_point_depends_on_the_model() {
        for (model, longest) in [
            (PreemptModel::None, 600),
            (PreemptModel::Voluntary, 500),
            (PreemptModel::Full, 200),
            (PreemptModel::Lazy, 200),
            (PreemptModel::Rt, 0),
        ] {
            let sections = Sections::new(&table(), model);
            let number = sections.nearest(Call::Fork, 0).number;
            assert_eq!(sections.longest_closed(number, 1000 * NS).0.div_ceil(NS), longest, "{model:?}");
        }
    }

    #[test]
    fn a_call_that_honours_requests_everywhere_has_no_number() {
        for (model, any) in [(PreemptModel::Rt, false), (PreemptModel::Full, true), (PreemptModel::None, true)] {
            assert_eq!(Sections::new(&table(), model).nearest(Call::Fork, 0).number != 0, any, "{model:?}");
        }
    }
}
