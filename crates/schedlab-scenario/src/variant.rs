//! `[[variant]]`: which kernel decides, what is switched in it, what its tasks ask for differently.

use schedlab_policy::{ConfigError, Feature, KernelConfig, Knob, KnobInfo, KnobUnit, PreemptModel, Version};
use schedlab_spec::Cgroup;
use serde_json::{json, Map, Value as Json};

use crate::attributes::Attributes;
use crate::cgroup;
use crate::error::{Result, ScenarioError};
use crate::keys::{VARIANT, VARIANT_TASK};
use crate::machine::{self, hz};
use crate::program::word;
use crate::units;
use crate::value::{Table, Value};
use schedlab_model::suggest;

/// The name that stands for this machine's kernel.
const RUNNING: &str = "running";

/// A variant before its workloads are known to fit.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    /// Its name.
    pub name: String,
    /// The kernel, configured.
    pub kernel: KernelConfig,
    /// What differs from the kernel's defaults, as results print it.
    pub changes: Json,
    /// The same as files of a real kernel and the values written to them, in this order.
    pub settings: Vec<(String, String)>,
    /// Attributes of a workload's tasks, by the workload's name.
    pub tasks: Vec<(String, Attributes<'a>)>,
    /// The control groups with what it changes in them.
    pub cgroups: Vec<Cgroup>,
    /// `sched_autogroup_enabled`.
    pub autogroup: bool,
    /// The first of its settings that only a real kernel can take.
    pub not_simulated: Option<Box<ScenarioError>>,
}

/// What a variant sets beside its tasks and groups.
#[derive(Default)]
struct Told {
    /// Files of a real kernel and what is written to them.
    files: Vec<(String, String)>,
    /// The first setting that the simulator refuses.
    not_simulated: Option<Box<ScenarioError>>,
}

impl Told {
    fn write(&mut self, file: impl Into<String>, value: impl Into<String>) {
        self.files.push((file.into(), value.into()));
    }

    /// Takes the kernel's answer to a setting: what is not modelled is refused only where it is to be simulated.
    fn accept(
        &mut self,
        answer: std::result::Result<(), ConfigError>,
        place: impl FnOnce(&ConfigError) -> Box<ScenarioError>,
    ) -> Result<()> {
        match answer {
            Ok(()) => Ok(()),
            Err(error @ ConfigError::NotModelled { .. }) => {
                self.only_real(|| place(&error));
                Ok(())
            }
            Err(error) => Err(place(&error)),
        }
    }

    fn only_real(&mut self, why: impl FnOnce() -> Box<ScenarioError>) {
        self.not_simulated = self.not_simulated.take().or_else(|| Some(why()));
    }
}

/// Reads a variant for a machine of `nr_cpus` whose kernel ticks `machine_hz` times a second.
pub(crate) fn read<'a>(
    table: Table<'a>,
    nr_cpus: usize,
    machine_hz: u32,
    workloads: &[&str],
    groups: &[cgroup::Draft],
) -> Result<Draft<'a>> {
    let table = table.only(&VARIANT)?;
    let name = word(&table.require("name", "the name that results show")?)?.to_owned();
    let version = kernel(&table)?;
    let own_hz = table.get("hz").map(|value| hz(&value)).transpose()?;
    let mut kernel = KernelConfig::new(version, nr_cpus, own_hz.unwrap_or(machine_hz));
    let mut told = Told::default();
    let preempt = preempt(&table, &mut kernel, &mut told)?;
    let mut changes = Map::new();
    changes.insert("features".into(), features(&table, &mut kernel, &mut told)?.into());
    changes.insert("knobs".into(), knobs(&table, &mut kernel, &mut told)?.into());
    changes.insert("hz".into(), own_hz.map_or(Json::Null, Json::from));
    changes.insert("preempt".into(), preempt.map_or(Json::Null, |model| model.name().into()));
    let (tasks, shown) = tasks(&table, version, &name, workloads)?;
    changes.insert("tasks".into(), shown.into());
    let cgroups = cgroups(&table, version, &name, groups, &mut changes)?;
    let autogroup = table.get("autogroup").map(|value| value.boolean()).transpose()?;
    if let Some(enabled) = autogroup {
        changes.insert("autogroup".into(), enabled.into());
        told.write("/proc/sys/kernel/sched_autogroup_enabled", u8::from(enabled).to_string());
    }
    let sysctl = sysctl(&table, &mut told)?;
    if !sysctl.is_empty() {
        changes.insert("sysctl".into(), sysctl.into());
    }
    let autogroup = autogroup.unwrap_or(false);
    let (settings, not_simulated) = (told.files, told.not_simulated);
    Ok(Draft { name, kernel, changes: changes.into(), settings, tasks, cgroups, autogroup, not_simulated })
}

/// The groups as this variant has them.
fn cgroups(
    table: &Table,
    version: &Version,
    variant: &str,
    groups: &[cgroup::Draft],
    changes: &mut Map<String, Json>,
) -> Result<Vec<Cgroup>> {
    let own = cgroup::overrides(table, groups)?;
    let mut cgroups = Vec::new();
    for group in groups {
        let mut cgroup = Cgroup { path: group.path.clone(), ..Cgroup::default() };
        let files = own.iter().filter(|(path, _)| *path == group.path).map(|(_, files)| files);
        for files in std::iter::once(&group.files).chain(files) {
            files.check_kernel(version, variant)?;
            files.apply(&mut cgroup);
        }
        cgroups.push(cgroup);
    }
    if !own.is_empty() {
        let shown = own.iter().map(|(path, files)| (path.clone(), files.show()));
        changes.insert("cgroups".into(), shown.collect::<Map<_, _>>().into());
    }
    Ok(cgroups)
}

/// The version row a kernel's name stands for.
fn kernel(table: &Table) -> Result<&'static Version> {
    let value = table.require("kernel", "a kernel version such as \"6.12.0\"")?;
    let name = value.string("a kernel version such as \"6.12.0\"")?;
    if name == RUNNING {
        return running(&value);
    }
    Version::find(name).map_err(|error| value.error(error.to_string()).hint(error.hint()))
}

/// The row of the kernel that runs this program, which is the guest's where that is a guest's agent.
fn running(value: &Value) -> Result<&'static Version> {
    let release = machine::release().map_err(|why| value.error(why))?;
    Version::of_release(&release).ok_or_else(|| {
        let names: Vec<&str> = Version::all().iter().map(|version| version.name).collect();
        let error = value.error(format!("the running kernel {release} is not modelled"));
        error.hint(format!("modelled versions: {}", names.join(", ")))
    })
}

/// Settings outside of the scheduler's own knobs: the file below /proc/sys, and what is written to it.
fn sysctl(table: &Table, told: &mut Told) -> Result<Map<String, Json>> {
    let mut shown = Map::new();
    let Some(value) = table.get("sysctl") else { return Ok(shown) };
    let all = value.table("a table such as { \"kernel.sched_autogroup_enabled\" = 0 }")?;
    for (name, value) in all.entries() {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !name.contains('.') || name.contains("..") || name.starts_with('.') || !name.chars().all(plain) {
            let error = all.key_error(name, format!("{} is no sysctl", crate::error::quote(name)));
            return Err(error.expected("a full name such as \"kernel.sched_autogroup_enabled\""));
        }
        let number = value.integer(i64::MIN..=i64::MAX)?;
        told.only_real(|| {
            let error = all.key_error(name, "the simulator has no sysctls");
            error.hint("knobs, features and preempt are simulated; sysctls are set with --arm host and --arm vm")
        });
        shown.insert(name.to_owned(), number.into());
        told.write(format!("/proc/sys/{}", name.replace('.', "/")), number.to_string());
    }
    Ok(shown)
}

/// Where a kernel from 5.13 on keeps its scheduler's settings.
const DEBUGFS: &str = "/sys/kernel/debug";

fn preempt(table: &Table, kernel: &mut KernelConfig, told: &mut Told) -> Result<Option<PreemptModel>> {
    let Some(value) = table.get("preempt") else { return Ok(None) };
    let text = value.string("a preemption model")?;
    let model = text.parse::<PreemptModel>().map_err(|error| refused(&value, &error))?;
    told.accept(kernel.set_preempt(model), |error| refused(&value, error))?;
    told.write(format!("{DEBUGFS}/sched/preempt"), model.name());
    Ok(Some(model))
}

fn features(table: &Table, kernel: &mut KernelConfig, told: &mut Told) -> Result<Map<String, Json>> {
    let mut shown = Map::new();
    let Some(value) = table.get("features") else { return Ok(shown) };
    let features = value.table("a table such as { RUN_TO_PARITY = false }")?;
    for (name, value) in features.entries() {
        told.accept(kernel.set_feature(name, value.boolean()?), |error| refused_key(&features, name, error))?;
        shown.insert(name.to_owned(), value.boolean()?.into());
        let word = if value.boolean()? { name.to_owned() } else { format!("NO_{name}") };
        told.write(format!("{DEBUGFS}/sched/features"), word);
    }
    Ok(shown)
}

fn knobs(table: &Table, kernel: &mut KernelConfig, told: &mut Told) -> Result<Map<String, Json>> {
    let mut shown = Map::new();
    let Some(value) = table.get("knobs") else { return Ok(shown) };
    let knobs = value.table("a table such as { base_slice = \"3ms\" }")?;
    let mut entries = knobs.entries();
    // Runtime and period of real-time tasks bound each other: the runtime goes first if it fits the period as it is.
    let period = kernel.knobs.rt_period_us as i64;
    entries.sort_by_key(|(name, value)| match Knob::find(name).map(|info| info.knob) {
        Some(Knob::RtRuntime) if value.integer(0..=period).is_ok() => 0,
        Some(Knob::RtRuntime) => 2,
        _ => 1,
    });
    for (name, value) in entries {
        let number = match Knob::find(name).map(|info| info.unit) {
            Some(KnobUnit::Nanos) => value.duration(0..=u64::MAX)?,
            Some(KnobUnit::Number) => value.integer(0..=i64::MAX)? as u64,
            None => 0,
        };
        let answer = kernel.set_knob(name, number);
        if matches!(answer, Err(ConfigError::NotModelled { .. })) {
            // A real kernel takes it, and checks the knobs after it against it.
            kernel.restore_knob(name, number).map_err(|error| refused_key(&knobs, name, &error))?;
        }
        told.accept(answer, |error| refused_key(&knobs, name, error))?;
        let canonical = Knob::find(name).map_or(name, |info| info.name);
        if shown.contains_key(canonical) {
            return Err(knobs.key_error(name, format!("the knob {canonical} is set twice")));
        }
        if let Some(info) = Knob::find(name) {
            told.write(knob_file(info), number.to_string());
        }
        let is_time = Knob::find(name).is_some_and(|info| info.unit == KnobUnit::Nanos);
        shown.insert(canonical.to_owned(), if is_time { units::show_duration(number).into() } else { number.into() });
    }
    Ok(shown)
}

/// Where 5.13 and later keep a knob: in debugfs, or a sysctl.
fn knob_file(info: &KnobInfo) -> String {
    match info.path.strip_prefix("kernel.") {
        Some(sysctl) => format!("/proc/sys/kernel/{sysctl}"),
        None => format!("{DEBUGFS}/{}", info.path),
    }
}

type Tasks<'a> = (Vec<(String, Attributes<'a>)>, Map<String, Json>);

fn tasks<'a>(table: &Table<'a>, version: &Version, variant: &str, workloads: &[&str]) -> Result<Tasks<'a>> {
    let (mut tasks, mut shown) = (Vec::new(), Map::new());
    let Some(value) = table.get("tasks") else { return Ok((tasks, shown)) };
    let all = value.table("a table: tasks.WORKLOAD.slice and so on")?;
    for (workload, value) in all.entries() {
        if !workloads.contains(&workload) {
            let error = all.key_error(workload, format!("unknown workload {}", crate::error::quote(workload)));
            return Err(error.expected("the name of a workload").hint(suggest(workload, workloads.iter().copied())));
        }
        let own = value.table("a table such as { slice = \"0.1ms\" }")?.only(&VARIANT_TASK)?;
        let attributes = Attributes::read(&own, &[], usize::MAX)?;
        attributes.check_kernel(version, variant)?;
        shown.insert(workload.to_owned(), show(&attributes));
        tasks.push((workload.to_owned(), attributes));
    }
    Ok((tasks, shown))
}

fn show(attributes: &Attributes) -> Json {
    let mut shown = Map::new();
    let mut put = |key: &str, value: Option<Json>| value.map(|value| shown.insert(key.into(), value));
    put("nice", attributes.nice.map(Json::from));
    put("slice", attributes.slice.as_ref().map(|slice| json!(units::show_duration(slice.0))));
    put("latency_nice", attributes.latency_nice.as_ref().map(|nice| json!(nice.0)));
    put("policy", attributes.policy.map(|policy| json!(policy.to_string())));
    shown.into()
}

fn refused(value: &Value, error: &ConfigError) -> Box<ScenarioError> {
    value.error(error.to_string()).hint(error.hint().unwrap_or_default())
}

/// An error about a feature or knob, with the versions that have it when this one does not.
fn refused_key(table: &Table, name: &str, error: &ConfigError) -> Box<ScenarioError> {
    let elsewhere: Vec<&str> = match error {
        ConfigError::UnknownFeature { .. } => {
            Version::all().iter().filter(|v| has_feature(v, name)).map(|v| v.name).collect()
        }
        ConfigError::UnknownKnob { .. } => {
            Version::all().iter().filter(|v| has_knob(v, name)).map(|v| v.name).collect()
        }
        _ => Vec::new(),
    };
    let hint = match &elsewhere[..] {
        [] => error.hint().unwrap_or_default(),
        versions => format!("kernels that have it: {}", versions.join(", ")),
    };
    table.key_error(name, error.to_string()).hint(hint)
}

fn has_feature(version: &Version, name: &str) -> bool {
    Feature::find(name).is_some_and(|feature| feature.info().default_in(version).is_some())
}

fn has_knob(version: &Version, name: &str) -> bool {
    Knob::find(name).is_some_and(|info| info.exists_in(version))
}

/// The groups that any variant limits are counted in all of them; their paths.
pub(crate) fn count_limited(drafts: &mut [Draft]) -> Vec<String> {
    let all = || drafts.iter().flat_map(|draft| &draft.cgroups);
    let mut limited: Vec<String> =
        all().filter(|cgroup| cgroup.bandwidth.is_some()).map(|cgroup| cgroup.path.clone()).collect();
    limited.sort_unstable();
    limited.dedup();
    for cgroup in drafts.iter_mut().flat_map(|draft| &mut draft.cgroups) {
        cgroup.counted = limited.binary_search(&cgroup.path).is_ok();
    }
    limited
}
