//! What the Java-like and database-like servers share: service times and the threads of a garbage collector.

use super::about::{parameter, Parameter, Quantity};
use crate::build::{Builder, Code};
use crate::{Amount, Dist, Op};
use schedlab_model::{Nanos, MSEC};

/// Shape of service times.
const SIGMA: f64 = 0.5;

/// The numbers of this file, for the entries that use them.
pub(super) const COLLECTOR_THREADS: Parameter =
    parameter("collector threads", Quantity::Words("all CPUs up to 8, then 5/8 of the rest"), "HotSpot's default");
pub(super) const COLLECTOR_WORK: Parameter = parameter(
    "collector's work and pause",
    Quantity::Words("2 to 10 ms, every 0.5 to 2 s"),
    "estimate, half to twice that: no figure is published",
);
/// The shape of what `name` says.
pub(super) const fn shape(name: &'static str) -> Parameter {
    parameter(name, Quantity::Words("lognormal, sigma 0.5"), "estimate, sigma 0.2 to 1: no figure is published")
}

/// A lognormal service time with this mean.
pub(super) fn lognormal(builder: &mut Builder, mean: Nanos) -> Amount {
    // The mean of a lognormal is its median times exp(sigma^2 / 2).
    let median = (mean as f64 / libm::exp(SIGMA * SIGMA / 2.0)).round() as Nanos;
    builder.amount(Dist::Lognormal { median, sigma: SIGMA })
}

/// HotSpot's default number of collector threads: all CPUs up to 8, then 5/8 of the rest.
pub(super) fn collectors(nr_cpus: u32) -> u32 {
    if nr_cpus <= 8 {
        nr_cpus
    } else {
        8 + (nr_cpus - 8) * 5 / 8
    }
}

/// A thread of the collector: 2 to 10 ms of CPU time, every 0.5 to 2 s.
pub(super) fn collector(builder: &mut Builder) -> Code {
    let pause = builder.amount(Dist::Uniform { low: 500 * MSEC, high: 2000 * MSEC });
    let work = builder.amount(Dist::Uniform { low: 2 * MSEC, high: 10 * MSEC });
    let mut code = Code::default();
    code.forever(|code| {
        code.op(Op::Sleep(pause));
        code.op(Op::Run(work));
    });
    code
}
