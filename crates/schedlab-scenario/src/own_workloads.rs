//! `variant.workloads`: options in which the workloads of one variant differ from those of the others.
//!
//! Such a variant is read as a scenario of its own, in which it is the only variant and the options replace those of
//! the workloads; every check then applies to it as to any other. What the variants report must be the same, so the
//! names and the metrics of workloads cannot differ.

use toml::de::{DeArray, DeTable, DeValue};

use crate::error::{quote, Result, ScenarioError};
use crate::merge;
use crate::scenario::{tables, Scenario};
use crate::value::{Table, Value};
use schedlab_model::suggest;

/// The keys that decide which workload a table is, and where.
const FIXED: [&str; 4] = ["name", "use", "rt-app", "guest"];

/// Gives the variants of the scenario that have `workloads` their own; `read` reads a scenario from a table.
pub(crate) fn apply(root: &Table, scenario: &mut Scenario, read: impl Fn(&Table) -> Result<Scenario>) -> Result<()> {
    for (index, table) in tables(root, "variant")?.iter().enumerate() {
        let Some(value) = table.get("workloads") else { continue };
        let alone = alone(root, index, &value)?;
        let own = read(&root.with(&alone))?;
        same_metrics(&value, scenario, &own)?;
        let Some(own) = own.variants.into_iter().next() else { continue };
        scenario.variants[index].workloads = own.workloads;
        scenario.variants[index].programs = own.programs;
    }
    Ok(())
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
fn same_metrics(place: &Value, all: &Scenario, own: &Scenario) -> Result<()> {
    let names = |scenario: &Scenario| -> Vec<String> {
        scenario.metrics().iter().map(|metric| metric.name.clone()).filter(|name| !name.starts_with('/')).collect()
    };
    let (all, own) = (names(all), names(own));
    let differing = all.iter().find(|name| !own.contains(name)).or(own.iter().find(|name| !all.contains(name)));
    match differing {
        None => Ok(()),
        Some(name) => {
            let error: Box<ScenarioError> =
                place.error(format!("only some of the variants would have the metric {name}"));
            Err(error.hint("variants can differ in options that change no metric"))
        }
    }
}
