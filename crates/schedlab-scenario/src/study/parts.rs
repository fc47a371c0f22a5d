//! The tables of a study file.

use serde_json::{json, Value as Json};

use super::keys::{variant_keys, CONDITION, EXPERIMENT, EXPERIMENT_METRIC, GAP, INSTEAD, SET, SHORT, STUDY_VARIANT};
use super::Context;
use crate::error::{quote, Result};
use crate::naming::word;
use crate::scenario::tables;
use crate::value::{Table, Value};

/// A condition of the measurement, either stated by the publication or assumed.
#[derive(Debug)]
pub(super) struct Condition<'a> {
    pub what: &'a str,
    is: &'a str,
    source: Option<String>,
    assumed: Option<String>,
    /// The keys that it sets in every scenario.
    pub set: Option<Table<'a>>,
    /// The keys that its alternative sets.
    pub instead: Option<Table<'a>>,
    experiments: Option<Vec<Value<'a>>>,
}

impl Condition<'_> {
    /// Whether an experiment runs the alternative; all do unless the condition names some.
    pub fn has_alternative(&self, experiment: &str) -> bool {
        let named = |names: &Vec<Value>| names.iter().any(|name| name.as_string() == Some(experiment));
        self.instead.is_some() && self.experiments.as_ref().is_none_or(named)
    }

    pub fn describe(&self) -> Json {
        json!({ "what": self.what, "is": self.is, "source": self.source, "assumed": self.assumed })
    }
}

pub(super) fn conditions<'a>(root: &Table<'a>) -> Result<Vec<Condition<'a>>> {
    let mut found: Vec<Condition> = Vec::new();
    for table in tables(root, "condition")? {
        let table = table.only(&CONDITION)?;
        let condition = condition(&table)?;
        if found.iter().any(|known| known.what == condition.what) {
            return Err(table.error(format!("the condition {} is listed twice", quote(condition.what))));
        }
        found.push(condition);
    }
    Ok(found)
}

fn condition<'a>(table: &Table<'a>) -> Result<Condition<'a>> {
    let text = |key: &str, expected: &str| table.require(key, expected)?.string(expected);
    let (source, assumed) = (string(table, "source")?, string(table, "assumed")?);
    if source.is_some() == assumed.is_some() {
        let error = table.error("a condition must be either stated or assumed");
        return Err(error.expected("source if the publication states it, otherwise assumed"));
    }
    const FORM: &str = "a table such as { autogroup = true }";
    let set = |key: &str, section| -> Result<Option<Table<'a>>> {
        table.get(key).map(|value| value.table(FORM)?.only(section)).transpose()
    };
    let instead = set("instead", &INSTEAD)?;
    if let (None, Some(value)) = (&instead, table.get("experiments")) {
        return Err(value
            .error("experiments without instead")
            .hint("experiments selects those that run the alternative"));
    }
    Ok(Condition {
        what: text("what", "the name of the condition")?,
        is: text("is", "what holds in the runs")?,
        source,
        assumed,
        set: set("set", &SET)?,
        instead,
        experiments: table.get("experiments").map(|value| value.array("a list of names")).transpose()?,
    })
}

/// A kernel of the comparison.
#[derive(Debug)]
pub(super) struct Variant<'a> {
    pub name: &'a str,
    pub table: Table<'a>,
    pub missing: Option<String>,
}

impl Variant<'_> {
    pub fn describe(&self) -> Json {
        let text = |key: &str| self.table.get(key).and_then(|value| value.as_string().map(str::to_owned));
        json!({
            "name": self.name,
            "published": text("published").unwrap_or_else(|| self.name.to_owned()),
            "case": text("case"),
            "kernel": text("kernel"),
            "missing": self.missing,
        })
    }
}

pub(super) fn variants<'a>(root: &Table<'a>) -> Result<Vec<Variant<'a>>> {
    let mut found: Vec<Variant> = Vec::new();
    for table in tables(root, "variant")? {
        let table = table.only_these(&variant_keys(), STUDY_VARIANT.name)?;
        let name = word(&table.require("name", "the name shown in results")?)?;
        if found.iter().any(|known| known.name == name) {
            return Err(table.error(format!("two variants are named {}", quote(name))));
        }
        for key in ["published", "case"] {
            string(&table, key)?;
        }
        let missing = string(&table, "missing")?;
        if missing.is_none() {
            table.require("kernel", "a kernel version such as \"6.12.0\", or missing")?;
        }
        found.push(Variant { name, table, missing });
    }
    if found.len() < 2 {
        return Err(root.error("fewer than two variants").expected("a baseline and what is compared with it"));
    }
    Ok(found)
}

/// An experiment with its cases.
#[derive(Debug)]
pub(super) struct Experiment<'a> {
    pub name: &'a str,
    pub table: Table<'a>,
    /// The indices of its variants in the study; the first is the baseline.
    pub variants: Vec<usize>,
    variant_names: Vec<&'a str>,
    /// The published name of each metric and the simulated metric.
    pub metrics: Vec<(&'a str, Table<'a>)>,
    pub missing: Option<String>,
    pub short: Option<Table<'a>>,
}

impl Experiment<'_> {
    pub fn describe(&self) -> Json {
        json!({ "name": self.name, "variants": self.variant_names, "missing": self.missing })
    }
}

pub(super) fn experiments<'a>(context: &Context<'a>) -> Result<Vec<Experiment<'a>>> {
    let mut found: Vec<Experiment> = Vec::new();
    for table in tables(&context.root, "experiment")? {
        let table = table.only(&EXPERIMENT)?;
        let experiment = experiment(context, table.clone())?;
        if found.iter().any(|known| known.name == experiment.name) {
            return Err(table.error(format!("two experiments are named {}", quote(experiment.name))));
        }
        found.push(experiment);
    }
    if found.is_empty() {
        return Err(context.root.error("there is no experiment").expected("at least one [[experiment]] table"));
    }
    for value in context.conditions.iter().filter_map(|condition| condition.experiments.as_ref()).flatten() {
        let name = value.string("the name of an experiment")?;
        if !found.iter().any(|known| known.name == name) {
            return Err(value.unknown("experiment", name, found.iter().map(|known| known.name)));
        }
    }
    Ok(found)
}

fn experiment<'a>(context: &Context<'a>, table: Table<'a>) -> Result<Experiment<'a>> {
    let name = table.require("name", "the figures' column `experiment`")?.string("a name")?;
    let variants = match table.get("variants") {
        Some(value) => chosen(context, &value)?,
        None => (0..context.variants.len()).collect(),
    };
    let missing = match (string(&context.root, "missing")?, string(&table, "missing")?) {
        (Some(study), _) => Some(study),
        (None, own) => own,
    };
    if missing.is_none() && table.get("workload").is_none() {
        return Err(table.error("there is no workload").expected("at least one [[experiment.workload]], or missing"));
    }
    let metrics = metrics(&table.require("metric", "metric.PUBLISHED, a table for each published metric")?)?;
    let short = table.get("short").map(|value| value.table("a table")?.only(&SHORT)).transpose()?;
    let variant_names = variants.iter().map(|index| context.variants[*index].name).collect();
    Ok(Experiment { name, table, variants, variant_names, metrics, missing, short })
}

fn chosen(context: &Context, value: &Value) -> Result<Vec<usize>> {
    let known = || context.variants.iter().map(|variant| variant.name);
    let mut found = Vec::new();
    for item in value.array("a list of variants")? {
        let name = item.string("the name of a variant")?;
        let index = known().position(|one| one == name).ok_or_else(|| item.unknown("variant", name, known()))?;
        if found.contains(&index) {
            return Err(item.error(format!("{} is listed twice", quote(name))));
        }
        found.push(index);
    }
    if found.len() < 2 {
        return Err(value.error("fewer than two variants").expected("a baseline and what is compared with it"));
    }
    Ok(found)
}

/// The tables of `metric.PUBLISHED`.
pub(super) fn metrics<'a>(value: &Value<'a>) -> Result<Vec<(&'a str, Table<'a>)>> {
    const FORM: &str = "a table such as { of = \"hackbench.time\" }";
    let mut found = Vec::new();
    for (published, value) in value.table("a table for each published metric")?.entries() {
        let metric = value.table(FORM)?.only(&EXPERIMENT_METRIC)?;
        let kinds = ["of", "share", "missing"].iter().filter(|key| metric.get(key).is_some()).count();
        if kinds != 1 {
            return Err(metric.error("exactly one of the keys of, share and missing is required").expected(FORM));
        }
        for key in ["share", "missing"] {
            if let (Some(_), Some(stat)) = (string(&metric, key)?, metric.get("stat")) {
                return Err(stat.error("stat without of").hint("remove stat"));
            }
        }
        found.push((published, metric));
    }
    Ok(found)
}

/// The known and the supposed reasons for disagreement, as JSON.
pub(super) fn gaps(root: &Table, experiments: &[Experiment]) -> Result<Vec<Json>> {
    let mut found = Vec::new();
    for table in tables(root, "gap")? {
        let table = table.only(&GAP)?;
        let name = table.require("experiment", "the name of an experiment")?;
        let experiment = name.string("the name of an experiment")?;
        let known = || experiments.iter().map(|one| one.name);
        if !known().any(|one| one == experiment) {
            return Err(name.unknown("experiment", experiment, known()));
        }
        let mechanism = required(&table, "mechanism", "what the model lacks")?;
        let (known, hypothesis) = (string(&table, "found")?, string(&table, "hypothesis")?);
        if known.is_some() == hypothesis.is_some() {
            let error = table.error("a gap is either known or a hypothesis");
            return Err(error.expected("found, which says how it is known, or hypothesis, which says what suggests it"));
        }
        found.push(json!({
            "experiment": experiment,
            "workload": string(&table, "workload")?,
            "metric": string(&table, "metric")?,
            "mechanism": mechanism,
            "found": known,
            "hypothesis": hypothesis,
        }));
    }
    Ok(found)
}

/// The string at an optional key.
pub(super) fn string(table: &Table, key: &str) -> Result<Option<String>> {
    table.get(key).map(|value| value.string("a string").map(str::to_owned)).transpose()
}

/// The string at a required key.
pub(super) fn required(table: &Table, key: &str, expected: &str) -> Result<String> {
    table.require(key, expected)?.string(expected).map(str::to_owned)
}
