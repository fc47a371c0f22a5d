//! The default value of a benchmark's option, as JSON.

use schedlab_workload::catalogue::Preset;
use serde_json::Value as Json;

use crate::units::show_duration;

/// The value of an option that the scenario does not set.
pub(crate) fn option_default(default: Preset) -> Json {
    match default {
        Preset::Flag(on) => on.into(),
        Preset::Number(number) => number.into(),
        Preset::Time(ns) => show_duration(ns).into(),
        Preset::Word(word) => word.into(),
        Preset::PerCpu => "the number of CPUs".into(),
        Preset::Unset => Json::Null,
    }
}
