//! Every key of a study file, one line each. The reader accepts exactly the keys that docs/studies/format.md documents.
//!
//! There is no key for a cost: costs belong to the machine.

use crate::keys::{key, Section, VARIANT};

/// Every section, in the order of the page.
pub const STUDY_SECTIONS: &[&Section] =
    &[&STUDY, &CONDITION, &SET, &INSTEAD, &STUDY_VARIANT, &EXPERIMENT, &EXPERIMENT_METRIC, &CASE, &SHORT, &GAP];

/// The file itself.
pub const STUDY: Section = Section {
    name: "the study",
    keys: &[
        key("name", "string", "the file's name", "what reports call it"),
        key("summary", "string", "", "one line about it"),
        key("source", "string", "", "the publication that the figures are from"),
        key("figures", "path", "the study's name and .csv", "the published figures, relative to the study file"),
        key("machine", "as in a scenario", "", "the machine it was measured on"),
        key("missing", "string", "", "what none of it can be simulated without; then there is no machine"),
        key("guest", "tables", "", "virtual machines of the machine, as in a scenario"),
        key("condition", "tables", "", "the circumstances of the measurement"),
        key("variant", "tables", "", "the kernels that were compared"),
        key("experiment", "tables", "", "what was run"),
        key("gap", "tables", "", "why rows disagree, as far as that is known or supposed"),
    ],
};

/// `[[condition]]`.
pub const CONDITION: Section = Section {
    name: "[[condition]]",
    keys: &[
        key("what", "string", "", "name of the condition, such as autogroup"),
        key("is", "string", "", "what holds in the runs"),
        key("source", "string", "", "where the publication says so"),
        key("assumed", "string", "", "why this is the default, where the publication does not say"),
        key("set", "table", "", "what it changes in the scenarios"),
        key("instead", "table", "", "what the alternative changes; its runs are shown and never counted"),
        key("experiments", "list of names", "all", "which experiments run the alternative"),
    ],
};

/// `condition.set`.
pub const SET: Section = Section {
    name: "condition.set",
    keys: &[
        key("hz", "100, 250, 300 or 1000", "the machine's", "timer frequency of variants that name none"),
        key("preempt", "as in a scenario", "the kernel's", "preemption model of variants that name none"),
        key("autogroup", "boolean", "false", "autogroups of variants that do not say"),
        key("physics", "table", "the machine's", "mechanisms of the machine, for variants that name none"),
    ],
};

/// `condition.instead`.
pub const INSTEAD: Section = Section {
    name: "condition.instead",
    keys: &[
        key("machine", "as in a scenario", "the study's", "machine"),
        key("hz", "100, 250, 300 or 1000", "as without the alternative", "as in condition.set"),
        key("preempt", "as in a scenario", "as without the alternative", "as in condition.set"),
        key("autogroup", "boolean", "as without the alternative", "as in condition.set"),
        key("physics", "table", "as without the alternative", "as in condition.set"),
        key("duration", "duration", "as without the alternative", "limit of a run"),
        key("set", "table", "", "set.WORKLOAD: keys of that workload in the alternative"),
        key(
            "cases",
            "1 to 1000 or list of names",
            "all",
            "which of an experiment's cases run the alternative: the first so many, or these",
        ),
    ],
};

/// The keys of a variant in a study, in addition to those of a scenario's `[[variant]]`.
pub const STUDY_VARIANT: Section = Section {
    name: "a study's [[variant]]",
    keys: &[
        key("published", "string", "its name", "the figures' column `variant`"),
        key("case", "string", "the case's", "the figures' column `case`, where it differs by variant"),
        key("missing", "string", "", "the mechanism that it needs; then no kernel is needed"),
    ],
};

/// `[[experiment]]`.
pub const EXPERIMENT: Section = Section {
    name: "[[experiment]]",
    keys: &[
        key("name", "string", "", "the figures' column `experiment`"),
        key("variants", "list of names", "all", "which variants it compares; the first is the baseline"),
        key("machine", "as in a scenario", "the study's", "machine"),
        key("duration", "duration", "10s", "limit of a run, warm-up included"),
        key("warmup", "duration", "0s", "samples before this are dropped"),
        key("workload", "tables", "", "what runs, as in a scenario"),
        key("cgroup", "tables", "", "control groups, as in a scenario"),
        key("metric", "table", "", "metric.PUBLISHED: the simulated metric behind the figures' column `metric`"),
        key("missing", "string", "", "what it cannot be simulated without; then there is no workload"),
        key("case", "tables", "one without options", "what differs between its rows"),
        key("short", "table", "", "what the short form for tests changes"),
    ],
};

/// `experiment.metric.PUBLISHED`.
pub const EXPERIMENT_METRIC: Section = Section {
    name: "experiment.metric.PUBLISHED",
    keys: &[
        key("of", "as in [[metric]]", "", "what is measured"),
        key("stat", "as in [[metric]]", "", "statistic of a metric with many samples"),
        key("share", "name of a task", "", "instead of `of`: the share of all CPU time that tasks of this name get"),
        key("missing", "string", "", "instead of `of`: what has to exist before it can be measured"),
    ],
};

/// `[[experiment.case]]`.
pub const CASE: Section = Section {
    name: "[[experiment.case]]",
    keys: &[
        key("workload", "string", "", "the figures' column `workload`"),
        key("case", "string", "", "the figures' column `case`"),
        key("set", "table", "", "set.WORKLOAD: keys of that workload in this case"),
        key("metric", "table", "the experiment's", "metric.PUBLISHED: what stands for that metric in this case"),
        key("missing", "string", "", "what this case cannot be simulated without"),
    ],
};

/// `experiment.short`.
pub const SHORT: Section = Section {
    name: "experiment.short",
    keys: &[
        key("cases", "1 to 1000", "1", "how many of the cases, from the first"),
        key("duration", "duration", "the experiment's", "limit of a run"),
        key("warmup", "duration", "the experiment's", "samples before this are dropped"),
        key("set", "table", "", "set.WORKLOAD: keys of that workload in the short form"),
    ],
};

/// `[[gap]]`.
pub const GAP: Section = Section {
    name: "[[gap]]",
    keys: &[
        key("experiment", "string", "", "the experiment whose rows disagree"),
        key("workload", "string", "all", "only rows of this workload"),
        key("metric", "string", "all", "only rows of this metric"),
        key("mechanism", "string", "", "what the model lacks"),
        key("found", "string", "", "how that is known"),
        key("hypothesis", "string", "", "instead of `found`: what suggests it, where it is not known"),
    ],
};

/// The keys of a study's `[[variant]]`.
pub(super) fn variant_keys() -> Vec<&'static str> {
    VARIANT.names().into_iter().chain(STUDY_VARIANT.names()).collect()
}
