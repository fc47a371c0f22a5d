//! The keys of `[[metric]]`.

use super::{key, Section};

/// `[[metric]]`.
pub const METRIC: Section = Section {
    name: "[[metric]]",
    keys: &[
        key("of", "WORKLOAD.METRIC, /GROUP.METRIC or sched.METRIC", "", "what is measured"),
        key(
            "stat",
            "p20 p50 p75 p90 p95 p99 p99.5 p99.9 p99.95 p99.99 mean min max count",
            "",
            "statistic, for a metric with samples",
        ),
        key("margin", "percentage", "2%", "smallest difference that matters"),
        key("better", "lower, higher or neither", "the metric's", "which direction is an improvement"),
        key("unit", "us, ms or s", "the metric's", "unit in which a time is shown"),
        key(
            "queueing",
            "true or false",
            "the metric's",
            "whether its samples are time in a queue, before a task took the entry; pages then show that part of a request \
             separately",
        ),
        key(
            "at-least",
            "number, in the unit",
            "",
            "lower bound for a correct scheduler; checked by the tests of scenarios/bugs",
        ),
        key("at-most", "number, in the unit", "", "upper bound for a correct scheduler, likewise"),
    ],
};
