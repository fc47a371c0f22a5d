//! Two runs side by side up to the first scheduler event without counterpart that no earlier one can precede.
//!
//! Decisions are compared on the way too, CPU by CPU: if none of them turns out to have parted the runs, the first
//! unlike one without an event of its own (a wider search, a shorter one) is what there is to tell.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use schedlab_model::{CpuId, Nanos};
use schedlab_policy::decision::{Decision, Verdict};
use schedlab_sim::SimError;
use schedlab_spec::RunSpec;

use super::item::Item;
use super::lane::{Lane, Row, Shelf};

/// The CPU where two runs part and both sides' events.
pub(super) struct Split {
    pub cpu: CpuId,
    pub items: [Option<Item>; 2],
    /// When each run's last common event of the CPU was.
    pub since: [Nanos; 2],
    pub common: u64,
    /// Decisions that both took, over all CPUs.
    pub alike: u64,
    /// The first that one of them took otherwise, up to the split.
    pub unlike: Option<[Decision; 2]>,
}

impl Split {
    /// The side whose event comes first.
    pub fn first(&self) -> usize {
        let time = |side: usize| self.items[side].map_or(Nanos::MAX, |item| item.event.time);
        usize::from(time(1) < time(0))
    }

    pub fn time(&self) -> Nanos {
        self.items.iter().flatten().map(|item| item.event.time).min().unwrap_or(Nanos::MAX)
    }
}

/// What is known of the decisions so far.
#[derive(Default)]
struct Decisions {
    alike: u64,
    /// Per CPU, the first two that differ; from then on its decisions are not compared.
    unlike: Vec<Option<[Decision; 2]>>,
    /// Per CPU, what either run has decided and the other not yet; a tick that leaves all as it is does not count.
    pending: Vec<[VecDeque<Decision>; 2]>,
}

/// Runs both specifications side by side; `None` = they never part.
pub(super) fn find(specs: [&RunSpec; 2], cancel: &AtomicBool) -> Result<Option<Split>, SimError> {
    let mut sinks = [Shelf::default(), Shelf::default()];
    let [sink_a, sink_b] = &mut sinks;
    let mut lanes = [Lane::new(specs[0], sink_a), Lane::new(specs[1], sink_b)];
    let mut decisions = Decisions::new(lanes[0].rows.len());
    let (mut found, mut common): (Option<Split>, u64) = (None, 0);
    loop {
        let behind = usize::from(lanes[1].next_time() < lanes[0].next_time());
        let done = lanes.iter().all(|lane| lane.over);
        if !done {
            lanes[behind].step(cancel)?;
            decisions.follow(&lanes[behind], behind);
        }
        for cpu in touched(&lanes[behind], done) {
            let (matched, split) = compare(&mut lanes, cpu, done);
            common += matched;
            if let Some(split) = split.filter(|split| found.as_ref().is_none_or(|known| split.time() < known.time())) {
                found = Some(Split { common, ..split });
            }
        }
        if done || found.as_ref().is_some_and(|split| nothing_before(&lanes, split.time())) {
            return Ok(found.map(|split| decisions.up_to(split)));
        }
    }
}

/// The CPUs to compare: those with new events; at the end all.
fn touched(lane: &Lane<'_>, done: bool) -> Vec<CpuId> {
    match done {
        true => (0..lane.rows.len()).map(|cpu| CpuId(cpu as u32)).collect(),
        false => lane.touched.clone(),
    }
}

/// Takes off what both have; the events left over if they differ. At the end one side may have none.
fn compare(lanes: &mut [Lane<'_>; 2], cpu: CpuId, done: bool) -> (u64, Option<Split>) {
    let [a, b] = lanes;
    let (a, b) = (&mut a.rows[cpu.index()], &mut b.rows[cpu.index()]);
    let mut common = 0;
    while let (Some(x), Some(y)) = (a.items.front(), b.items.front()) {
        if !x.same(y) {
            break;
        }
        common += 1;
        (a.matched, b.matched) = (x.event.time, y.event.time);
        a.items.pop_front();
        b.items.pop_front();
    }
    let items = [a.items.front().copied(), b.items.front().copied()];
    let parts = if done { items.iter().any(Option::is_some) } else { items.iter().all(Option::is_some) };
    let since = [a.matched, b.matched];
    (common, parts.then_some(Split { cpu, items, since, common: 0, alike: 0, unlike: None }))
}

/// Both runs are past the time, and no event before it still waits for its counterpart.
fn nothing_before(lanes: &[Lane<'_>; 2], time: Nanos) -> bool {
    lanes.iter().all(|lane| {
        let pending = |row: &Row| row.items.front().is_some_and(|item| item.event.time < time);
        lane.known_until() >= time && !lane.rows.iter().any(pending)
    })
}

impl Decisions {
    fn new(cpus: usize) -> Self {
        Decisions { alike: 0, unlike: vec![None; cpus], pending: vec![Default::default(); cpus] }
    }

    /// Takes off what both have decided alike.
    fn follow(&mut self, lane: &Lane<'_>, side: usize) {
        let counted = |decision: &&Decision| !matches!(decision.verdict, Verdict::Stay(_));
        for decision in lane.decided.iter().map(|kept| &kept.decision).filter(counted) {
            let (pending, unlike) = (&mut self.pending[decision.cpu.index()], &mut self.unlike[decision.cpu.index()]);
            if unlike.is_some() {
                continue;
            }
            pending[side].push_back(*decision);
            let [a, b] = pending;
            if let (Some(x), Some(y)) = (a.front().copied(), b.front().copied()) {
                match alike(&x, &y) {
                    true => self.alike += 1,
                    false => *unlike = Some([x, y]),
                }
                a.pop_front();
                b.pop_front();
            }
        }
    }

    fn up_to(&self, split: Split) -> Split {
        let before = |pair: &&[Decision; 2]| pair.iter().all(|decision| decision.now <= split.time());
        let earliest = |pair: &&[Decision; 2]| pair[0].now.min(pair[1].now);
        let unlike = self.unlike.iter().flatten().filter(before).min_by_key(earliest).copied();
        Split { alike: self.alike, unlike, ..split }
    }
}

/// The same outcome, by whatever rule; of a search, as wide.
fn alike(a: &Decision, b: &Decision) -> bool {
    let as_wide = !matches!(a.verdict, Verdict::Search(_)) || a.compared[0].1 == b.compared[0].1;
    a.verdict == b.verdict && a.asked == b.asked && as_wide
}
