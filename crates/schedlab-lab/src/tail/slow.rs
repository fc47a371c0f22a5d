//! One sample, and where its time went.

use super::account::Account;
use super::names::{Name, Names};
use super::path::Ended;

/// One sample.
pub struct Slow {
    pub ended: Ended,
    pub kernel: usize,
    pub cpu: usize,
    pub program: Name,
    pub account: Account,
}

impl Slow {
    pub fn json(&self, kernels: &[String], names: &Names) -> serde_json::Value {
        let mut json = self.account.json(names);
        json["ns"] = self.ended.ns.into();
        json["at"] = self.ended.at.into();
        json["pid"] = self.ended.pid.into();
        json["task"] = names.of(self.program).into();
        json["lane"] = lane(&kernels[self.kernel], self.cpu).into();
        json
    }
}

/// The name of a lane, as timelines have it.
pub fn lane(kernel: &str, cpu: usize) -> String {
    match kernel {
        "" => format!("CPU {cpu}"),
        _ => format!("{kernel} CPU {cpu}"),
    }
}
