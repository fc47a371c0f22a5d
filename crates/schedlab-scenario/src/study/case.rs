//! A case of an experiment: its scenario consists of the study's machine, variants and conditions and its own options.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::{json, Value as Json};
use toml::de::{DeArray, DeString, DeTable, DeValue};
use toml::Spanned;

use super::keys::{CASE, STUDY_VARIANT};
use super::parts::{metrics, string, Condition, Experiment};
use super::Context;
use crate::error::{Result, ScenarioError};
use crate::scenario::{of_root, tables, Scenario};
use crate::value::{Table, Value};

/// The cases of an experiment, then those of its alternatives, as JSON. Their scenarios are appended to `scenarios`.
pub(super) fn cases<'a>(
    context: &Context<'a>,
    experiment: &Experiment<'a>,
    scenarios: &mut Vec<Arc<Scenario>>,
) -> Result<Vec<Json>> {
    let mut own: Vec<Option<Table>> = Vec::new();
    for table in tables(&experiment.table, "case")? {
        own.push(Some(table.only(&CASE)?));
    }
    if own.is_empty() {
        own.push(None);
    }
    if context.short {
        let most = experiment.short.as_ref().and_then(|short| short.get("cases"));
        own.truncate(most.map_or(Ok(1), |value| value.integer(1..=1000))? as usize);
    }
    let alternatives =
        context.conditions.iter().filter(|condition| !context.short && condition.has_alternative(experiment.name));
    let mut found = Vec::new();
    for alternative in std::iter::once(None).chain(alternatives.map(Some)) {
        let wanted = alternative.and_then(|condition| condition.instead.as_ref()?.get("cases"));
        for table in wanted.map_or_else(|| Ok(own.iter().collect()), |wanted| chosen(&own, &wanted))? {
            let metrics = metrics_of(experiment, table.as_ref())?;
            let case = Case { context, experiment, table: table.as_ref(), metrics, alternative };
            if let Some(json) = case.describe(scenarios)? {
                found.push(json);
            }
        }
    }
    Ok(found)
}

/// The cases that an alternative runs: a number of them, in order, or those with these names. A list of names leaves
/// out those that this experiment does not have, but it must have one of them.
fn chosen<'c, 'a>(own: &'c [Option<Table<'a>>], wanted: &Value<'a>) -> Result<Vec<&'c Option<Table<'a>>>> {
    let Some(listed) = wanted.as_array() else {
        let most = wanted.integer(1..=1000)? as usize;
        return Ok(own.iter().take(most).collect());
    };
    let listed = listed.iter().map(|name| name.string("the name of a case")).collect::<Result<Vec<_>>>()?;
    let name_of = |case: &Option<Table<'a>>| case.as_ref()?.get("case")?.as_string();
    let found: Vec<_> = own.iter().filter(|case| name_of(case).is_some_and(|name| listed.contains(&name))).collect();
    if found.is_empty() {
        let names: Vec<&str> = own.iter().filter_map(name_of).collect();
        let given = listed.first().copied().unwrap_or_default();
        return Err(wanted.unknown("case", given, names));
    }
    Ok(found)
}

struct Case<'c, 'a> {
    context: &'c Context<'a>,
    experiment: &'c Experiment<'a>,
    table: Option<&'c Table<'a>>,
    metrics: Vec<(&'a str, Table<'a>)>,
    alternative: Option<&'c Condition<'a>>,
}

/// The experiment's metrics with those that the case has for itself.
fn metrics_of<'a>(experiment: &Experiment<'a>, case: Option<&Table<'a>>) -> Result<Vec<(&'a str, Table<'a>)>> {
    let mut found = experiment.metrics.clone();
    let Some(value) = case.and_then(|case| case.get("metric")) else { return Ok(found) };
    for (published, metric) in metrics(&value)? {
        let place = found.iter_mut().find(|(known, _)| *known == published);
        let known = || experiment.metrics.iter().map(|(known, _)| *known);
        let place = place.ok_or_else(|| value.unknown("metric", published, known()))?;
        place.1 = metric;
    }
    Ok(found)
}

impl<'a> Case<'_, 'a> {
    /// The case as JSON, with its scenario unless something is missing. `None` for the alternative of a missing case.
    fn describe(&self, scenarios: &mut Vec<Arc<Scenario>>) -> Result<Option<Json>> {
        let missing = self.missing()?;
        if missing.is_some() && self.alternative.is_some() {
            return Ok(None);
        }
        let mut metrics = Vec::new();
        let (mut number, mut fingerprint) = (None, None);
        if missing.is_none() {
            let scenario = self.scenario()?;
            fingerprint = Some(self::fingerprint(&scenario)?);
            metrics = self.metrics(&scenario)?;
            number = Some(scenarios.len());
            scenarios.push(Arc::new(scenario));
        } else {
            metrics.extend(self.metrics.iter().map(|(published, _)| json!({ "published": published })));
        }
        Ok(Some(json!({
            "experiment": self.experiment.name,
            "workload": self.own("workload")?.unwrap_or_default(),
            "case": self.own("case")?.unwrap_or_default(),
            "alternative": self.alternative.map(|condition| condition.what),
            "missing": missing,
            "metrics": metrics,
            "scenario": number,
            "fingerprint": fingerprint,
        })))
    }

    fn own(&self, key: &str) -> Result<Option<String>> {
        self.table.map_or(Ok(None), |table| string(table, key))
    }

    /// The reason why the case cannot be simulated: its own, that of the experiment, or that of the baseline.
    fn missing(&self) -> Result<Option<String>> {
        let baseline = &self.context.variants[self.experiment.variants[0]];
        Ok(match (&self.experiment.missing, self.own("missing")?) {
            (Some(experiment), _) => Some(experiment.clone()),
            (None, Some(own)) => Some(own),
            (None, None) => baseline.missing.clone(),
        })
    }

    fn scenario(&self) -> Result<Scenario> {
        let context = self.context;
        let parts = [
            self.experiment.name.to_owned(),
            self.own("workload")?.unwrap_or_default(),
            self.own("case")?.unwrap_or_default(),
        ];
        let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let document = Spanned::new(0..0, self.document()?);
        let root = Table::root(context.text, &document);
        let name = format!("{}: {}", context.name, parts.join(", "));
        of_root(&root, context.text.name, &name, context.dir, &context.overrides)
    }

    /// The scenario as a document whose parts keep their positions in the study file.
    fn document(&self) -> Result<DeTable<'a>> {
        let mut root = DeTable::new();
        for key in ["duration", "warmup"] {
            let changed = [self.instead(), self.short()].into_iter().flatten().find_map(|from| from.get(key));
            if let Some(value) = changed.or_else(|| self.experiment.table.get(key)) {
                put(&mut root, key, value.raw());
            }
        }
        if let Some(value) = self.machine() {
            put(&mut root, "machine", value.raw());
        }
        put(&mut root, "workload", array(self.workloads()?));
        if let Some(groups) = self.experiment.table.get("cgroup") {
            put(&mut root, "cgroup", groups.raw());
        }
        if let Some(guests) = self.context.root.get("guest") {
            put(&mut root, "guest", guests.raw());
        }
        put(&mut root, "variant", array(self.variants()));
        put(&mut root, "metric", array(self.metric_tables()));
        Ok(root)
    }

    fn short(&self) -> Option<&Table<'a>> {
        self.experiment.short.as_ref().filter(|_| self.context.short)
    }

    /// The table of keys that the alternative sets, if the case is an alternative.
    fn instead(&self) -> Option<&Table<'a>> {
        self.alternative.and_then(|condition| condition.instead.as_ref())
    }

    /// The machine of the alternative, otherwise of the experiment, otherwise of the study.
    fn machine(&self) -> Option<Value<'a>> {
        let own = || self.experiment.table.get("machine").or_else(|| self.context.root.get("machine"));
        self.instead().and_then(|instead| instead.get("machine")).or_else(own)
    }

    /// The value that the conditions give to a key of the variants; the alternative has precedence.
    fn sets(&self, key: &str) -> Option<Value<'a>> {
        let alternative = self.instead().and_then(|instead| instead.get(key));
        alternative.or_else(|| self.context.conditions.iter().find_map(|condition| condition.set.as_ref()?.get(key)))
    }

    fn workloads(&self) -> Result<Vec<Spanned<DeValue<'a>>>> {
        let mut workloads = Vec::new();
        let mut names = Vec::new();
        for table in tables(&self.experiment.table, "workload")? {
            let name = ["name", "use"].iter().find_map(|key| table.get(key)?.as_string()).unwrap_or_default();
            names.push(name);
            let mut raw = table.raw().clone();
            let sets = self.with_sets().filter_map(|from| from.get("set"));
            for set in sets {
                if let Some(own) = set.table("set.WORKLOAD tables")?.get(name) {
                    merge(&mut raw, own.table("keys of the workload")?.raw());
                }
            }
            workloads.push(Spanned::new(table.start()..table.start() + 1, DeValue::Table(raw)));
        }
        for from in self.with_sets() {
            self.known(from, &names)?;
        }
        Ok(workloads)
    }

    /// The tables that may have `set.WORKLOAD`, in the order in which they apply.
    fn with_sets(&self) -> impl Iterator<Item = &Table<'a>> {
        [self.table, self.short(), self.instead()].into_iter().flatten()
    }

    /// Refuses `set` for an unknown workload.
    fn known(&self, from: &Table, names: &[&str]) -> Result<()> {
        let Some(set) = from.get("set") else { return Ok(()) };
        let set = set.table("set.WORKLOAD tables")?;
        match set.entries().iter().find(|(name, _)| !names.contains(name)) {
            Some((name, value)) => Err(value.unknown("workload", name, names.iter().copied())),
            None => Ok(()),
        }
    }

    fn variants(&self) -> Vec<Spanned<DeValue<'a>>> {
        let known = self.experiment.variants.iter().map(|index| &self.context.variants[*index]);
        let make = |table: &Table<'a>| {
            let mut raw = table.raw().clone();
            for key in STUDY_VARIANT.names() {
                raw.remove(&spanned(key));
            }
            for key in ["hz", "preempt", "autogroup", "physics"] {
                if let (None, Some(value)) = (table.get(key), self.sets(key)) {
                    put(&mut raw, key, value.raw());
                }
            }
            Spanned::new(table.start()..table.start() + 1, DeValue::Table(raw))
        };
        known.filter(|variant| variant.missing.is_none()).map(|variant| make(&variant.table)).collect()
    }

    /// The simulated metrics, each once.
    fn metric_tables(&self) -> Vec<Spanned<DeValue<'a>>> {
        let mut seen = Vec::new();
        let mut found = Vec::new();
        for (_, table) in &self.metrics {
            let text = |key: &str| table.get(key).and_then(|value| value.as_string());
            let key = (text("of"), text("stat"));
            if table.get("of").is_some() && !seen.contains(&key) {
                seen.push(key);
                found.push(Spanned::new(table.start()..table.start() + 1, DeValue::Table(table.raw().clone())));
            }
        }
        found
    }

    /// The simulated metric for each published metric, with its unit.
    fn metrics(&self, scenario: &Scenario) -> Result<Vec<Json>> {
        let mut found = Vec::new();
        for (published, table) in &self.metrics {
            let [of, stat, share, missing] = ["of", "stat", "share", "missing"].map(|key| string(table, key));
            let (of, stat, share, missing) = (of?, stat?, share?, missing?);
            let metric = scenario.metrics().iter().find(|one| Some(&one.of) == of.as_ref() && one.stat == stat);
            let unlisted = || -> Box<ScenarioError> { table.error("this metric is not in the scenario") };
            found.push(match (metric, share, missing) {
                (Some(metric), _, _) => json!({
                    "published": published,
                    "metric": metric.name,
                    "unit": metric.unit.name(),
                    "better": metric.better.name(),
                }),
                (None, Some(task), _) => json!({ "published": published, "share": task, "unit": "%" }),
                (None, None, Some(missing)) => json!({ "published": published, "missing": missing }),
                (None, None, None) => return Err(unlisted()),
            });
        }
        Ok(found)
    }
}

/// Identifies everything that the runs depend on: machine, kernels, programs and their parameters.
fn fingerprint(scenario: &Scenario) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for variant in scenario.variants() {
        format!("{} {:?}", variant.name, scenario.run_spec(&variant.name, 0)?).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn spanned(key: &str) -> Spanned<DeString<'static>> {
    Spanned::new(0..0, DeString::Owned(key.to_owned()))
}

fn put<'a>(table: &mut DeTable<'a>, key: &str, value: Spanned<DeValue<'a>>) {
    // A table keeps the position of an existing key, so the old key is removed first.
    table.remove(&spanned(key));
    table.insert(Spanned::new(value.span(), DeString::Owned(key.to_owned())), value);
}

fn merge<'a>(table: &mut DeTable<'a>, with: &DeTable<'a>) {
    for (key, value) in with {
        table.remove(key);
        table.insert(key.clone(), value.clone());
    }
}

fn array<'a>(items: Vec<Spanned<DeValue<'a>>>) -> Spanned<DeValue<'a>> {
    let start = items.first().map_or(0, |item| item.span().start);
    Spanned::new(start..start + 1, DeValue::Array(items.into_iter().collect::<DeArray>()))
}
