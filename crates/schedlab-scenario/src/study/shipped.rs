//! The shipped studies, embedded into the program.

use serde_json::{json, Value as Json};

use super::{Study, StudyOptions};
use crate::error::Result;

macro_rules! study {
    ($id:literal) => {
        (
            $id,
            include_str!(concat!("../../../../studies/", $id, ".toml")),
            include_str!(concat!("../../../../studies/", $id, ".csv")),
        )
    };
}

const STUDIES: &[(&str, &str, &str)] = &[
    study!("arm64-vcpu-preempted"),
    study!("powerpc-idle-hint"),
    study!("idle-cpu-search"),
    study!("preempt-auto-none"),
    study!("eevdf-rfc-cyclictest"),
    study!("eevdf-rfc-sleepers"),
    study!("eevdf-intel"),
    study!("eevdf-intel-log"),
    study!("eevdf-meta-hhvm"),
    study!("eevdf-power10"),
    study!("eevdf-power10-load"),
    study!("delay-dequeue-pipe"),
];

/// The ids of the shipped studies.
pub(super) fn ids() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|(id, _, _)| *id)
}

/// The text of a shipped study and of its figures.
pub(super) fn text_of(id: &str) -> Option<(&'static str, &'static str)> {
    STUDIES.iter().find(|(name, _, _)| *name == id).map(|(_, toml, csv)| (*toml, *csv))
}

/// All shipped studies, one JSON object each.
pub(crate) fn listing() -> Result<Json> {
    let mut list = Vec::new();
    for id in ids() {
        let study = Study::load(id, &StudyOptions::default())?;
        let about = study.describe();
        list.push(json!({
            "id": id,
            "summary": about["summary"],
            "source": about["source"],
            "missing": about["missing"],
            "cases": about["cases"].as_array().map_or(0, |cases| cases.iter().filter(|one| one["alternative"].is_null()).count()),
        }));
    }
    Ok(list.into())
}
