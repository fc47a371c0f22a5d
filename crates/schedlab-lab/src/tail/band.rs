//! The sums over all samples of a band of durations.

use std::collections::BTreeMap;

use serde_json::json;

use super::account::Account;
use super::names::{Name, Names};
use super::slow::{lane, Slow};

/// All samples of one band.
#[derive(Default)]
pub struct Band {
    pub count: u64,
    pub ns: u128,
    pub account: Account,
    pub tasks: BTreeMap<Name, u64>,
    /// By kernel and CPU.
    pub lanes: BTreeMap<(usize, usize), u64>,
    pub tenths: [u64; 10],
}

impl Band {
    pub fn add(&mut self, sample: &Slow, tenth: usize) {
        self.count += 1;
        self.ns += u128::from(sample.ended.ns);
        self.account.add(&sample.account);
        *self.tasks.entry(sample.program).or_default() += 1;
        *self.lanes.entry((sample.kernel, sample.cpu)).or_default() += 1;
        self.tenths[tenth] += 1;
    }

    pub fn merge(&mut self, other: &Band) {
        self.count += other.count;
        self.ns += other.ns;
        self.account.add(&other.account);
        other.tasks.iter().for_each(|(name, count)| *self.tasks.entry(*name).or_default() += count);
        other.lanes.iter().for_each(|(cpu, count)| *self.lanes.entry(*cpu).or_default() += count);
        self.tenths.iter_mut().zip(other.tenths).for_each(|(total, part)| *total += part);
    }

    pub fn json(&self, kernels: &[String], names: &Names) -> serde_json::Value {
        let mut json = self.account.json(names);
        let lanes: serde_json::Map<_, _> =
            self.lanes.iter().map(|((kernel, cpu), count)| (lane(&kernels[*kernel], *cpu), (*count).into())).collect();
        let tasks: serde_json::Map<_, _> =
            self.tasks.iter().map(|(name, count)| (names.of(*name).to_owned(), (*count).into())).collect();
        json["count"] = self.count.into();
        json["ns"] = u64::try_from(self.ns).unwrap_or(u64::MAX).into();
        json["tasks"] = tasks.into();
        json["lanes"] = lanes.into();
        json["tenths"] = json!(self.tenths);
        json
    }
}
