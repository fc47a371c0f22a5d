//! The scenario: validated, immutable and with all defaults.

use std::path::Path;
use std::sync::Arc;

use schedlab_model::{Nanos, MSEC};
use schedlab_policy::KernelConfig;
use schedlab_spec::{Cgroup, CpuChange, Guest, Machine, Physics, RunSpec};
use schedlab_workload::Workload;
use serde_json::Value as Json;

use crate::error::{quote, Result, ScenarioError};
use crate::grouping::Grouping;
use crate::keys::SCENARIO;
use crate::metric::{self, Metric};
use crate::overrides::{wrong, Overrides, Seeds, LONGEST_RUN, MOST_SEEDS};
use crate::own_workloads::{self, Own};
use crate::set::Set;
use crate::source::{read, FileText};
use crate::text::Text;
use crate::units::show_duration;
use crate::value::{Table, Value};
use crate::workload::Program;
use crate::{arm, cgroup, cross_checks, guest, machine, merge, task_memory_checks, variant, workload, write};
use schedlab_model::suggest;

/// A validated scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name in reports.
    pub name: String,
    /// The one-line description; may be empty.
    pub summary: String,
    /// The file as the user named it.
    pub file: String,
    /// The machine.
    pub machine: Arc<Machine>,
    /// The maximum duration of a run, including the warm-up.
    pub duration: Nanos,
    /// Samples before this time are dropped.
    pub warmup: Nanos,
    /// Whether random noise is enabled.
    pub noise: bool,
    /// Which draw breaks the ties that the kernel leaves to chance ([`schedlab_model::Ties`]).
    pub ties: Option<u64>,
    /// The seeds of a comparison.
    pub seeds: Vec<u64>,
    pub(crate) variants: Vec<Variant>,
    metrics: Vec<Metric>,
    /// How many seeds of a comparison are run again under the other grouping.
    pub check_groups: u64,
    /// The other grouping of the tasks; none: there is none to compare.
    pub other_grouping: Option<Grouping>,
    /// The settings for real kernels, for the results.
    pub(crate) arm: Json,
    /// The catalogue id or path of each workload, or `program`.
    pub(crate) uses: Vec<String>,
    /// The options and task attributes of each workload, for the results.
    pub(crate) written: Vec<Json>,
    /// The declared control groups, for the results.
    pub(crate) cgroups: Json,
    /// The text of the file; with overrides, the text of the scenario that they make of it.
    pub(crate) text: String,
    /// The overrides of single keys, as on the command line.
    pub(crate) overrides: Vec<String>,
    /// The guest of each workload.
    guest_of: Vec<Option<String>>,
}

/// One of the compared configurations.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The name of the variant.
    pub name: String,
    /// The kernel: version row, features, knobs, HZ, preemption model.
    pub kernel: KernelConfig,
    /// The differences from the kernel's defaults: `features`, `knobs`, `hz`, `preempt`, `tasks`.
    pub changes: Json,
    /// The same differences as files of a real kernel and the values to write to them, in this order.
    pub settings: Vec<(String, String)>,
    /// The workloads with the options and task attributes of this variant.
    pub workloads: Arc<Vec<Workload>>,
    /// The program of the catalogue, or rt-app, of each workload; `None` for programs of the scenario itself.
    pub programs: Arc<Vec<Option<Program>>>,
    /// The control groups with the values of this variant, parents first.
    pub cgroups: Arc<Vec<Cgroup>>,
    /// CPUs that go offline and come back.
    pub hotplug: Arc<Vec<CpuChange>>,
    /// The guests with the values of this variant, without their workloads.
    pub guests: Vec<Guest>,
    /// Whether the tasks of each workload that are outside of control groups share an autogroup
    /// (`sched_autogroup_enabled`).
    pub autogroup: bool,
    /// The name of its kernel in the file.
    pub named: String,
    /// The distribution whose configuration the kernel has, with the source of that; none: Kconfig's defaults.
    pub config: Option<(String, String)>,
    /// The mechanisms of the simulated machine.
    pub physics: Physics,
    /// The error for a setting that the simulator does not support, if there is one.
    pub not_simulated: Option<Box<ScenarioError>>,
}

impl Scenario {
    /// Reads a scenario file. `overrides` is a JSON object, see [`Overrides::from_json`].
    pub fn load(path: &Path, overrides: Option<&str>) -> Result<Scenario> {
        let overrides = Overrides::from_json(overrides)?;
        let FileText { name, bytes } =
            read(path).map_err(|reason| ScenarioError::new(path.display().to_string(), "", reason))?;
        let stem = path.file_stem().map_or_else(|| name.clone(), |stem| stem.to_string_lossy().into_owned());
        let dir = path.parent().unwrap_or(Path::new(""));
        build(&name, &bytes, &stem, dir, &overrides)
    }

    /// Reads a scenario from a text that messages call `name`; paths in it are relative to the current directory.
    pub fn parse(text: &str, name: &str, overrides: Option<&str>) -> Result<Scenario> {
        let stem = Path::new(name).file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
        build(name, text.as_bytes(), &stem, Path::new(""), &Overrides::from_json(overrides)?)
    }

    /// The variants, in the order of the file.
    #[must_use]
    pub fn variants(&self) -> &[Variant] {
        &self.variants
    }

    fn metric_names(&self) -> Vec<String> {
        self.metrics.iter().map(|metric| metric.name.clone()).collect()
    }

    /// The workloads of the only variant.
    fn into_own(self, root: &Table) -> Result<Own> {
        let metrics = self.metric_names();
        let Some(variant) = self.variants.into_iter().next() else { return Err(root.error("there is no variant")) };
        Ok(Own { workloads: variant.workloads, programs: variant.programs, metrics })
    }

    /// The metrics: those the file lists, then the defaults.
    #[must_use]
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// The complete specification of a simulated run of a variant with a seed.
    ///
    /// # Errors
    /// Fails if there is no such variant or if it has a setting that the simulator does not support.
    pub fn run_spec(&self, variant: &str, seed: u64) -> Result<RunSpec> {
        match &self.variant(variant)?.not_simulated {
            Some(error) => Err(error.clone()),
            None => Ok(self.spec(self.variant(variant)?, seed)),
        }
    }

    /// The specification of a run on a real kernel, which supports every setting.
    ///
    /// # Errors
    /// Fails if there is no such variant, or if the scenario has guests.
    pub fn real_spec(&self, variant: &str, seed: u64) -> Result<RunSpec> {
        let found = self.variant(variant)?;
        if !found.guests.is_empty() {
            let error = ScenarioError::new(self.file.clone(), "guest", "guests are only simulated".to_owned());
            return Err(error.hint("run it with --arm sim"));
        }
        Ok(self.spec(found, seed))
    }

    fn spec(&self, found: &Variant, seed: u64) -> RunSpec {
        let mut host = RunSpec {
            machine: self.machine_with(found.physics),
            kernel: found.kernel.clone(),
            workloads: Arc::clone(&found.workloads),
            cgroups: Arc::clone(&found.cgroups),
            autogroup: found.autogroup,
            duration: self.duration,
            warmup: self.warmup,
            seed,
            noise: self.noise,
            ties: self.ties,
            hotplug: Arc::clone(&found.hotplug),
            guests: Arc::default(),
        };
        if !found.guests.is_empty() {
            host.guests = Arc::new(found.guests.iter().map(|guest| self.guest(guest, &host)).collect());
            host.workloads = self.workloads_of(&found.workloads, None);
        }
        host
    }

    /// The guest with its workloads and with what it shares with its host.
    fn guest(&self, guest: &Guest, host: &RunSpec) -> Guest {
        let workloads = self.workloads_of(&host.workloads, Some(&guest.name));
        let RunSpec { duration, warmup, seed, noise, ties, .. } = *host;
        let run = RunSpec { workloads, duration, warmup, seed, noise, ties, ..guest.run.clone() };
        Guest { run, ..guest.clone() }.with_physics(host.machine.physics)
    }

    fn workloads_of(&self, all: &[Workload], guest: Option<&str>) -> Arc<Vec<Workload>> {
        let of = all.iter().zip(&self.guest_of).filter(|(_, of)| of.as_deref() == guest);
        Arc::new(of.map(|(workload, _)| workload.clone()).collect())
    }

    fn machine_with(&self, physics: Physics) -> Arc<Machine> {
        if physics == self.machine.physics {
            return Arc::clone(&self.machine);
        }
        Arc::new(Machine { physics, ..Machine::clone(&self.machine) })
    }

    fn variant(&self, variant: &str) -> Result<&Variant> {
        self.variants.iter().find(|known| known.name == variant).ok_or_else(|| {
            let names = self.variants.iter().map(|known| known.name.as_str());
            let error =
                ScenarioError::new(self.file.clone(), "variant", format!("there is no variant {}", quote(variant)));
            error.hint(suggest(variant, names))
        })
    }
}

fn build(file: &str, bytes: &[u8], stem: &str, dir: &Path, overrides: &Overrides) -> Result<Scenario> {
    let text = Text::new(file, bytes)?.with(&overrides.sets);
    if text.is_blank() {
        return Err(text
            .error(0, "", "the file is empty")
            .expected("a scenario; docs/scenario.md lists all of its keys"));
    }
    let mut document = text.parse()?;
    merge::apply(document.get_mut(), &overrides.sets, &text)?;
    let scenario = of_root(&Table::root(&text, &document).only(&SCENARIO)?, file, stem, dir, overrides)?;
    let merged = || write::document(document.get_ref());
    let text = if overrides.sets.is_empty() { text.text.to_owned() } else { merged() };
    Ok(Scenario { text, overrides: overrides.sets.iter().map(Set::show).collect(), ..scenario })
}

/// Builds the scenario from a table that is not a file of its own.
pub(crate) fn of_root(root: &Table, file: &str, stem: &str, dir: &Path, overrides: &Overrides) -> Result<Scenario> {
    let machine = Arc::new(machine_of(root, dir, overrides)?);
    let nr_cpus = machine.topology.nr_cpus();
    let guests = guest::read(tables(root, "guest")?)?;
    let guest_names: Vec<&str> = guests.iter().map(|guest| guest.name.as_str()).collect();
    let drafts = workloads(root, dir, nr_cpus, &guests)?;
    guests.iter().try_for_each(|guest| guest.check_name(drafts.iter().map(|draft| draft.workload.name.as_str())))?;
    let names: Vec<_> = drafts.iter().map(|draft| (draft.declared.as_str(), draft.guest.as_deref())).collect();
    // rt-app creates the groups that its file names.
    let made = drafts.iter().filter(|draft| draft.table.get("rt-app").is_some());
    let made = made.flat_map(|draft| draft.workload.cgroups.iter().filter(|path| *path != "/").cloned()).collect();
    let cgroups = cgroup::read(tables(root, "cgroup")?, made)?;
    let mut variants = variants(root, &machine, &names, &cgroups, &guests)?;
    let limited = variant::count_limited(&mut variants);
    drafts.iter().try_for_each(|draft| cross_checks::check(draft, &variants, &cgroups, nr_cpus, machine.memory))?;
    drafts.iter().try_for_each(|draft| task_memory_checks::check(draft, &machine))?;
    cross_checks::capacities(&drafts, &variants, &machine)?;
    cross_checks::cpusets(&drafts, &variants, &cgroups, nr_cpus)?;
    cross_checks::hotplug(&drafts, &variants, &guests, &machine)?;
    for variant in &mut variants {
        variant.not_simulated = variant.not_simulated.take().or_else(|| cross_checks::boosted(&drafts, variant));
    }
    let (duration, warmup) = times(root)?;
    let mut plain: Vec<Workload> = drafts.iter().map(|draft| draft.workload.clone()).collect();
    if let Some(grouping) = overrides.grouping {
        grouping.apply(&mut variants, &mut plain);
    }
    let of_host: Vec<&Workload> =
        plain.iter().zip(&drafts).filter(|(_, draft)| draft.guest.is_none()).map(|(workload, _)| workload).collect();
    let other_grouping = Grouping::other(&variants, &of_host);
    let metrics = metric::read(&tables(root, "metric")?, &mut plain, &limited, &guest_names)?;
    let variant_names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    let arm = arm::read(root, dir, duration, &variant_names)?;
    let string = |key: &str| root.get(key).map(|value| value.string("a string").map(str::to_owned)).transpose();
    let mut scenario = Scenario {
        name: string("name")?.unwrap_or_else(|| stem.to_owned()),
        summary: string("summary")?.unwrap_or_default(),
        file: file.to_owned(),
        duration,
        warmup,
        noise: root.get("noise").map_or(Ok(true), |value| value.boolean())?,
        ties: overrides.ties,
        seeds: seeds(root, overrides)?,
        metrics,
        check_groups: root.get("check-groups").map_or(Ok(0), |value| value.integer(0..=MOST_CHECKED))? as u64,
        other_grouping,
        arm,
        guest_of: drafts.iter().map(|draft| draft.guest.clone()).collect(),
        written: drafts.iter().map(workload::Draft::show).collect(),
        cgroups: cgroups
            .iter()
            .map(|draft| (draft.path.clone(), draft.files.show()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        text: String::new(),
        overrides: Vec::new(),
        variants: finish(variants, plain, &drafts),
        uses: drafts.into_iter().map(|draft| draft.uses).collect(),
        machine,
    };
    let read = |alone: &Table| of_root(alone, file, stem, dir, overrides)?.into_own(alone);
    for (index, own) in own_workloads::read(root, &tables(root, "variant")?, &scenario.metric_names(), read)? {
        (scenario.variants[index].workloads, scenario.variants[index].programs) = (own.workloads, own.programs);
    }
    Ok(scenario)
}

fn machine_of(root: &Table, dir: &Path, overrides: &Overrides) -> Result<Machine> {
    let mut machine = own_machine(root, dir)?;
    for (cost, factor) in &overrides.costs {
        if !machine.scale(cost, *factor, machine::DEAREST) {
            let names = machine.costs.each_mut().into_iter().map(|(name, _)| name);
            let hint = suggest(cost, names.collect::<Vec<_>>());
            return Err(wrong("costs", format!("there is no cost {}", quote(cost))).hint(hint));
        }
    }
    Ok(machine)
}

fn own_machine(root: &Table, dir: &Path) -> Result<Machine> {
    let Some(value) = root.get("machine") else {
        let error = root.error("the key \"machine\" is missing").expected("a preset, a path, \"host\" or a table");
        return Err(error.hint(format!("presets: {}", machine::preset_ids().join(", "))));
    };
    machine::of_value(&value, dir)
}

/// The tables of an optional array of tables.
pub(crate) fn tables<'a>(root: &Table<'a>, key: &str) -> Result<Vec<Table<'a>>> {
    let Some(value) = root.get(key) else { return Ok(Vec::new()) };
    let form = format!("[[{key}]] tables");
    let items = value.array(&form)?;
    if items.len() > MOST_TABLES {
        return Err(value.error(format!("{} {key}s", items.len())).expected(format!("at most {MOST_TABLES}")));
    }
    items.iter().map(|item| item.table(&form)).collect()
}

/// The tables of an array of tables that must not be empty.
fn some_tables<'a>(root: &Table<'a>, key: &str) -> Result<Vec<Table<'a>>> {
    let tables = tables(root, key)?;
    if tables.is_empty() {
        return Err(root.error(format!("there is no {key}")).expected(format!("at least one [[{key}]] table")));
    }
    Ok(tables)
}

/// The maximum number of workloads, variants or metrics of a comparison.
const MOST_TABLES: usize = 1000;

/// The most seeds of `check-groups`.
const MOST_CHECKED: i64 = 100;

/// The maximum number of initial tasks, which exceeds the process ids of most machines.
const MOST_TASKS: u64 = 400_000;

fn workloads<'a>(
    root: &Table<'a>,
    dir: &Path,
    nr_cpus: usize,
    guests: &[guest::Draft<'a>],
) -> Result<Vec<workload::Draft<'a>>> {
    let mut drafts: Vec<workload::Draft> = Vec::new();
    for table in some_tables(root, "workload")? {
        for draft in workload::read(table.clone(), dir, nr_cpus, guests)? {
            let name = &draft.workload.name;
            if drafts.iter().any(|known| known.workload.name == *name) {
                let error = duplicate(&draft.table, "workload", name);
                return Err(error.hint(format!("give one of them another name: name = \"{name}-2\"")));
            }
            drafts.push(draft);
        }
        let tasks: u64 = drafts.iter().flat_map(|draft| &draft.workload.tasks).map(|task| u64::from(task.count)).sum();
        if tasks > MOST_TASKS {
            let error = table.error(format!("the workloads up to this one start {tasks} tasks"));
            return Err(error.expected(format!("at most {MOST_TASKS} in all workloads")));
        }
    }
    Ok(drafts)
}

fn variants<'a>(
    root: &Table<'a>,
    machine: &Machine,
    workloads: &[(&str, Option<&str>)],
    cgroups: &[cgroup::Draft],
    guests: &[guest::Draft],
) -> Result<Vec<variant::Draft<'a>>> {
    let mut drafts: Vec<variant::Draft> = Vec::new();
    for table in some_tables(root, "variant")? {
        let shared = root.get("hotplug");
        let draft = variant::read(table.clone(), machine, workloads, cgroups, guests, shared)?;
        if drafts.iter().any(|known| known.name == draft.name) {
            return Err(duplicate(&table, "variant", &draft.name));
        }
        drafts.push(draft);
    }
    Ok(drafts)
}

fn duplicate(table: &Table, what: &str, name: &str) -> Box<ScenarioError> {
    table.error(format!("two {what}s are named {}", quote(name)))
}

fn finish(drafts: Vec<variant::Draft>, plain: Vec<Workload>, workloads: &[workload::Draft]) -> Vec<Variant> {
    let shared = Arc::new(plain);
    let programs = Arc::new(workloads.iter().map(|draft| draft.program.clone()).collect());
    let finish = |draft: variant::Draft| Variant {
        programs: Arc::clone(&programs),
        workloads: if draft.tasks.is_empty() {
            Arc::clone(&shared)
        } else {
            Arc::new(changed(&shared, workloads, &draft))
        },
        name: draft.name,
        kernel: draft.kernel,
        changes: draft.changes,
        settings: draft.settings,
        cgroups: Arc::new(draft.cgroups),
        hotplug: Arc::new(draft.hotplug.into_iter().map(|(change, _)| change).collect()),
        guests: draft.guests,
        autogroup: draft.autogroup,
        named: draft.named,
        config: draft.distribution.map(|config| (config.id.to_owned(), config.source.clone())),
        physics: draft.physics,
        not_simulated: draft.not_simulated,
    };
    drafts.into_iter().map(finish).collect()
}

/// The workloads with the attributes that a variant sets by the names of their tables.
fn changed(plain: &[Workload], drafts: &[workload::Draft], variant: &variant::Draft) -> Vec<Workload> {
    let mut workloads = plain.to_vec();
    for (name, attributes) in &variant.tasks {
        let named = workloads.iter_mut().zip(drafts).filter(|(_, draft)| draft.declared == *name);
        named.for_each(|(workload, _)| attributes.apply_to(workload));
    }
    workloads
}

/// Duration and warm-up.
fn times(root: &Table) -> Result<(Nanos, Nanos)> {
    const USUAL: Nanos = 10_000 * MSEC;
    let [own, warm] = ["duration", "warmup"].map(|key| root.get(key));
    let duration = own.as_ref().map(|value| value.duration(MSEC..=LONGEST_RUN)).transpose()?.unwrap_or(USUAL);
    let warmup = warm.as_ref().map(|value| value.duration(0..=LONGEST_RUN)).transpose()?.unwrap_or(0);
    match own.filter(Value::is_set).or(warm) {
        Some(value) if warmup >= duration => {
            let [warmup, duration] = [warmup, duration].map(show_duration);
            let message = format!("the warm-up of {warmup} is not shorter than the run of {duration}");
            Err(value.error(message).expected("a warmup shorter than duration"))
        }
        _ => Ok((duration, warmup)),
    }
}

fn seeds(root: &Table, overrides: &Overrides) -> Result<Vec<u64>> {
    let form = format!("a count or a list of distinct numbers, at most {MOST_SEEDS}");
    if let Some(seeds) = &overrides.seeds {
        return seeds.all().map_err(|why| wrong("seeds", why).expected(form));
    }
    let Some(value) = root.get("seeds") else { return Ok((1..=10).collect()) };
    let number = |value: &Value| value.integer(0..=i64::MAX).map(|number| number as u64);
    let seeds = match value.as_array() {
        Some(items) => Seeds::List(items.iter().map(number).collect::<Result<_>>()?),
        None => Seeds::Count(value.integer(1..=MOST_SEEDS as i64)? as u64),
    };
    seeds.all().map_err(|why| value.error(why).expected(form))
}
