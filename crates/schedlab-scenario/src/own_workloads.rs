//! `variant.workloads`: options in which the workloads of one variant differ from those of the others.
//!
//! Such a variant is read as a scenario of its own, in which it is the only variant and the options replace those of
//! the workloads; every check then applies to it as to any other. What the variants report must be the same, so the
//! names and the metrics of workloads cannot differ.

use std::sync::Arc;

use toml::de::{DeArray, DeTable, DeValue};

use crate::error::{quote, Result, ScenarioError};
use crate::merge;
use crate::value::{Table, Value};
use crate::workload::Program;
use schedlab_model::suggest;
use schedlab_workload::Workload;

/// The keys that decide which workload a table is, and where.
const FIXED: [&str; 4] = ["name", "use", "rt-app", "guest"];

/// What a variant has of its own.
pub(crate) struct Own {
    pub workloads: Arc<Vec<Workload>>,
    pub programs: Arc<Vec<Option<Program>>>,
    /// The names of all metrics.
    pub metrics: Vec<String>,
}

/// The workloads of the variants that have `workloads`, by the number of the variant. `metrics` are those of the other
/// variants; `read` reads a scenario with one variant from a table.
pub(crate) fn read(
    root: &Table,
    variants: &[Table],
    metrics: &[String],
    read: impl Fn(&Table) -> Result<Own>,
) -> Result<Vec<(usize, Own)>> {
    let mut found = Vec::new();
    for (index, table) in variants.iter().enumerate() {
        let Some(value) = table.get("workloads") else { continue };
        let alone = alone(root, index, &value)?;
        let own = read(&root.with(&alone))?;
        same_metrics(&value, metrics, &own.metrics)?;
        found.push((index, own));
    }
    Ok(found)
}

/// The document with this variant alone, and with its options in the tables of the workloads.
fn alone<'a>(root: &Table<'a>, index: usize, options: &Value<'a>) -> Result<DeTable<'a>> {
    let mut document = root.raw().clone();
    let names = merge::names(&document, "workload");
    // Images of the vm arm have the names of all variants.
    document.remove("arm");
    // Which groups have metrics of a quota depends on all variants.
    if let Some(DeValue::Array(metrics)) = document.get_mut("metric").map(toml::Spanned::get_mut) {
        let of_group = |metric: &DeValue| merge::text_of(metric, "of").is_some_and(|of| of.starts_with('/'));
        let kept = metrics.iter().filter(|metric| !of_group(metric.get_ref())).cloned();
        *metrics = kept.collect::<Vec<_>>().into_iter().fold(DeArray::new(), |mut kept, metric| {
            kept.push(metric);
            kept
        });
    }
    if let Some(DeValue::Array(variants)) = document.get_mut("variant").map(toml::Spanned::get_mut) {
        let mut only = DeArray::new();
        if let Some(mut variant) = variants.get(index).cloned() {
            if let DeValue::Table(table) = variant.get_mut() {
                table.remove("workloads");
            }
            only.push(variant);
        }
        *variants = only;
    }
    let all = options.table("a table: workloads.NAME.count and so on")?;
    for (name, value) in all.entries() {
        let Some(place) = names.iter().position(|known| known == name) else {
            let error = all.key_error(name, format!("unknown workload {}", quote(name)));
            let hint = suggest(name, names.iter().map(String::as_str));
            return Err(error.expected("the name of a workload").hint(hint));
        };
        let own = value.table("a table of options such as { count = 4 }")?;
        if let Some((key, _)) = own.entries().into_iter().find(|(key, _)| FIXED.contains(key)) {
            let error = own.key_error(key, format!("variants cannot differ in {} of a workload", quote(key)));
            return Err(error.hint("its options can differ, such as the number of threads"));
        }
        let workloads = document.get_mut("workload").map(toml::Spanned::get_mut);
        let Some(DeValue::Array(workloads)) = workloads else { continue };
        let Some(DeValue::Table(workload)) = workloads.get_mut(place).map(toml::Spanned::get_mut) else { continue };
        for (key, option) in own.raw() {
            // A table keeps the position of an existing key, so the old key is removed first.
            workload.remove(&**key.get_ref());
            workload.insert(key.clone(), option.clone());
        }
    }
    Ok(document)
}

/// Refuses options that change which metrics there are.
fn same_metrics(place: &Value, all: &[String], own: &[String]) -> Result<()> {
    let not_in = |others: &[String], names: &[String]| {
        names.iter().find(|name| !name.starts_with('/') && !others.contains(name)).cloned()
    };
    let differing = not_in(own, all).or_else(|| not_in(all, own));
    match differing {
        None => Ok(()),
        Some(name) => {
            let error: Box<ScenarioError> =
                place.error(format!("only some of the variants would have the metric {name}"));
            Err(error.hint("variants can differ in options that change no metric"))
        }
    }
}
