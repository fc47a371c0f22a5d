//! The result of all kernels of a run: the columns of their lanes, in full or only near given points.

use std::collections::BTreeMap;

use schedlab_model::{Nanos, Pid};
use serde_json::json;

use super::marks::{Waited, Wake};
use super::near::Near;
use super::overview::Overview;

/// How many of the longest samples of each metric are kept.
const SLOWEST: usize = 8;

/// One CPU: flat columns.
#[derive(Default)]
struct Lane {
    name: String,
    slices: Vec<u64>,
    /// When the number of waiting tasks changed, and to what.
    depth: Vec<(Nanos, u32)>,
    /// From when to when it was idle while a task waited on another runqueue of its kernel.
    gaps: Vec<Nanos>,
    overview: Overview,
    /// How many tasks wait, and since when.
    waiting: (Nanos, u32),
}

/// Something that lasted.
enum Record {
    Slice { lane: usize, task: usize, preempted: bool },
    Depth { lane: usize, waiting: u32 },
    Gap { lane: usize },
    Wake(Wake),
}

/// What all kernels share.
#[derive(Default)]
pub struct Shared {
    pub tasks: Vec<(Pid, String)>,
    lanes: Vec<Lane>,
    wakes: Vec<Wake>,
    near: Option<Near<Record>>,
    /// By metric, the longest first.
    slowest: BTreeMap<String, Vec<Waited>>,
    from: Nanos,
}

impl Shared {
    /// Samples count that end at `from` or later. With points, only that many records around each of them are kept.
    pub fn new(from: Nanos, around: Option<(&[Nanos], usize)>) -> Self {
        Shared { from, near: around.map(|(points, most)| Near::new(points, most)), ..Shared::default() }
    }

    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// One more lane.
    pub fn lane(&mut self, name: String) {
        self.lanes.push(Lane { name, ..Lane::default() });
    }

    pub fn slice(&mut self, lane: usize, from: Nanos, until: Nanos, task: usize, preempted: bool) {
        match &mut self.near {
            Some(near) => {
                near.push(from, until, Record::Slice { lane, task, preempted });
                self.lanes[lane].overview.add(from, until);
            }
            None => self.lanes[lane].slice(from, until, task, preempted),
        }
    }

    pub fn gap(&mut self, lane: usize, from: Nanos, until: Nanos) {
        match &mut self.near {
            Some(near) => near.push(from, until, Record::Gap { lane }),
            None => self.lanes[lane].gaps.extend([from, until]),
        }
    }

    pub fn wake(&mut self, wake: Wake) {
        match &mut self.near {
            Some(near) => near.push(wake.at, wake.ran_at, Record::Wake(wake)),
            None => self.wakes.push(wake),
        }
    }

    /// Sets how many tasks wait on a runqueue from `now` on.
    pub fn depth(&mut self, lane: usize, now: Nanos, waiting: u32) {
        let own = &mut self.lanes[lane];
        let Some(near) = &mut self.near else { return own.depth(now, waiting) };
        let (since, before) = own.waiting;
        if before != waiting {
            if since < now {
                near.push(since, now, Record::Depth { lane, waiting: before });
            }
            own.waiting = (now, waiting);
        }
    }

    /// Keeps a sample if it is one of the longest of its metric that ended after the warm-up.
    pub fn slow(&mut self, metric: &str, one: Waited) {
        if one.at < self.from {
            return;
        }
        if !self.slowest.contains_key(metric) {
            self.slowest.insert(metric.to_owned(), Vec::new());
        }
        let Some(found) = self.slowest.get_mut(metric) else { return };
        if found.len() == SLOWEST && found.last().is_some_and(|least| one <= *least) {
            return;
        }
        let at = found.partition_point(|known| *known > one);
        found.insert(at, one);
        found.truncate(SLOWEST);
    }

    /// Everything as JSON, for a run from `start` to `end`.
    pub fn finish(mut self, start: Nanos, end: Nanos) -> serde_json::Value {
        for lane in 0..self.lanes.len() {
            let (_, waiting) = self.lanes[lane].waiting;
            if self.near.is_some() {
                self.depth(lane, end, waiting + 1);
            }
        }
        let windows = self.near.take().map(|near| self.recall(near, start, end));
        self.wakes.sort_by_key(|wake| wake.at);
        let Shared { lanes, tasks, wakes, slowest, .. } = self;
        let wakes: Vec<i64> = wakes.iter().flat_map(Wake::numbers).collect();
        let slowest: serde_json::Map<_, _> =
            slowest.into_iter().map(|(metric, found)| (metric, found.iter().map(Waited::numbers).collect())).collect();
        let part = windows.is_some();
        let lanes: Vec<serde_json::Value> = lanes.into_iter().map(|lane| lane.into_json(part)).collect();
        let mut json =
            json!({ "lanes": lanes, "tasks": tasks, "wakes": wakes, "slowest": slowest, "start": start, "end": end });
        if let Some(windows) = windows {
            json["windows"] = json!(windows);
        }
        json
    }

    /// Fills the columns with what was kept. Returns the ranges in which nothing is missing.
    fn recall(&mut self, near: Near<Record>, start: Nanos, end: Nanos) -> Vec<(Nanos, Nanos)> {
        let (kept, ranges) = near.finish();
        for (from, until, record) in kept {
            match record {
                Record::Slice { lane, task, preempted } => self.lanes[lane].slice(from, until, task, preempted),
                Record::Gap { lane } => self.lanes[lane].gaps.extend([from, until]),
                Record::Wake(wake) => self.wakes.push(wake),
                Record::Depth { lane, waiting } => {
                    self.lanes[lane].depth(from, waiting);
                    if until < end {
                        self.lanes[lane].depth(until, 0);
                    }
                }
            }
        }
        ranges.into_iter().map(|(low, high)| (low.clamp(start, end), high.clamp(start, end))).collect()
    }
}

impl Lane {
    fn slice(&mut self, from: Nanos, until: Nanos, task: usize, preempted: bool) {
        self.slices.extend([from, until, task as u64, u64::from(preempted)]);
    }

    fn depth(&mut self, now: Nanos, waiting: u32) {
        if self.depth.last().is_some_and(|(time, _)| *time == now) {
            self.depth.pop();
        }
        if self.depth.last().is_none_or(|(_, known)| *known != waiting) {
            self.depth.push((now, waiting));
        }
    }

    fn into_json(self, part: bool) -> serde_json::Value {
        let depth: Vec<u64> = self.depth.iter().flat_map(|(time, waiting)| [*time, u64::from(*waiting)]).collect();
        let mut json = json!({ "name": self.name, "slices": self.slices, "depth": depth, "gaps": self.gaps });
        if part {
            let (width, busy) = self.overview.finish();
            json["busy"] = json!(busy);
            json["bin"] = width.into();
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_longest_samples_are_kept() {
        let mut shared = Shared::default();
        for ns in 0..100 {
            shared.slow("m", Waited { ns: ns * 37 % 100, at: ns, pid: 1, lane: 0, queued: 0 });
        }
        let kept: Vec<Nanos> = shared.slowest["m"].iter().map(|one| one.ns).collect();
        assert_eq!(kept, [99, 98, 97, 96, 95, 94, 93, 92]);
    }
}
