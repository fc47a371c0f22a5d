//! `[[variant]]`: the kernel, its settings, and the attributes of tasks and groups that the variant overrides.

use schedlab_policy::{ConfigError, Feature, KernelConfig, Knob, KnobInfo, KnobUnit, PreemptModel, Version};
use schedlab_spec::{Cgroup, Guest, Machine, Physics};
use serde_json::{json, Map, Value as Json};

use crate::attributes::Attributes;
use crate::cgroup;
use crate::error::{Result, ScenarioError};
use crate::guest;
use crate::keys::{VARIANT, VARIANT_TASK};
use crate::machine::{self, hz, switches};
use crate::program::word;
use crate::units;
use crate::value::{Table, Value};
use schedlab_model::suggest;

/// The kernel name that selects the row of this machine's kernel.
const RUNNING: &str = "running";

/// A variant that has not been checked against the workloads.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    /// Its name.
    pub name: String,
    /// The configured kernel.
    pub kernel: KernelConfig,
    /// The differences from the kernel's defaults, for the results.
    pub changes: Json,
    /// The same differences as files of a real kernel and the values to write to them, in this order.
    pub settings: Vec<(String, String)>,
    /// Attributes of the tasks of each workload, by the workload's name.
    pub tasks: Vec<(String, Attributes<'a>)>,
    /// The control groups with the values of this variant.
    pub cgroups: Vec<Cgroup>,
    /// The guests with the values of this variant.
    pub guests: Vec<Guest>,
    /// `sched_autogroup_enabled`.
    pub autogroup: bool,
    /// The mechanisms of the machine.
    pub physics: Physics,
    /// The error for the first setting that only real kernels support.
    pub not_simulated: Option<Box<ScenarioError>>,
}

/// The settings of a variant on real kernels, collected while it is read.
#[derive(Default)]
pub(crate) struct RealSettings {
    /// Files and the values to write to them.
    files: Vec<(String, String)>,
    /// The error for the first setting that the simulator does not support.
    pub not_simulated: Option<Box<ScenarioError>>,
}

impl RealSettings {
    fn write(&mut self, file: impl Into<String>, value: impl Into<String>) {
        self.files.push((file.into(), value.into()));
    }

    /// Passes on the error of a setting, except that a setting which is not modelled is refused only when it is simulated.
    fn accept(
        &mut self,
        result: std::result::Result<(), ConfigError>,
        place: impl FnOnce(&ConfigError) -> Box<ScenarioError>,
    ) -> Result<()> {
        match result {
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

/// Reads a variant for this machine. Each workload comes with the guest that it runs in.
pub(crate) fn read<'a>(
    table: Table<'a>,
    machine: &Machine,
    workloads: &[(&str, Option<&str>)],
    groups: &[cgroup::Draft],
    guests: &[guest::Draft],
) -> Result<Draft<'a>> {
    let table = table.only(&VARIANT)?;
    let name = word(&table.require("name", "the name that results show")?)?.to_owned();
    let version = kernel(&table)?;
    let own_hz = table.get("hz").map(|value| hz(&value)).transpose()?;
    let mut kernel = KernelConfig::new(version, machine.topology.nr_cpus(), own_hz.unwrap_or(machine.hz));
    let mut settings = RealSettings::default();
    let preempt = preempt(&table, &mut kernel, &mut settings)?;
    let mut changes = Map::new();
    changes.insert("features".into(), features(&table, &mut kernel, &mut settings)?.into());
    changes.insert("knobs".into(), knobs(&table, &mut kernel, &mut settings)?.into());
    changes.insert("hz".into(), own_hz.map_or(Json::Null, Json::from));
    changes.insert("preempt".into(), preempt.map_or(Json::Null, |model| model.name().into()));
    let host = guest::Host { machine, kernel: &kernel, groups };
    let (guests, shown) = guest::of_variant(&table, guests, &host)?;
    if let Some(shown) = shown {
        changes.insert("guests".into(), shown);
    }
    let versions = Versions { host: version, guests: &guests };
    let (tasks, shown) = tasks(&table, versions, &name, workloads)?;
    changes.insert("tasks".into(), shown.into());
    let cgroups = cgroups(&table, version, &name, groups, &mut changes)?;
    let autogroup = table.get("autogroup").map(|value| value.boolean()).transpose()?;
    if let Some(enabled) = autogroup {
        changes.insert("autogroup".into(), enabled.into());
        settings.write("/proc/sys/kernel/sched_autogroup_enabled", u8::from(enabled).to_string());
    }
    let physics = physics(&table, machine, &mut changes)?;
    let sysctl = sysctl(&table, &mut settings)?;
    if !sysctl.is_empty() {
        changes.insert("sysctl".into(), sysctl.into());
    }
    let autogroup = autogroup.unwrap_or(false);
    if version.flat_hierarchy && (autogroup || !groups.is_empty()) {
        settings.only_real(|| {
            let message = format!("kernel {}: control groups are not modelled from 7.3 on", version.name);
            table.error(message).hint("an earlier kernel, or --arm vm")
        });
    }
    let RealSettings { files: settings, not_simulated } = settings;
    Ok(Draft {
        name,
        kernel,
        changes: changes.into(),
        settings,
        tasks,
        cgroups,
        guests,
        autogroup,
        physics,
        not_simulated,
    })
}

/// The mechanisms of the machine with those that the variant switches.
fn physics(table: &Table, machine: &Machine, changes: &mut Map<String, Json>) -> Result<Physics> {
    let Some(value) = table.get("physics") else { return Ok(machine.physics) };
    let own = value.table("a table such as { locks = false }")?;
    let mut shown = Map::new();
    for (name, value) in own.entries() {
        shown.insert(name.to_owned(), value.boolean()?.into());
    }
    changes.insert("physics".into(), shown.into());
    switches(&own, machine.physics, &machine.costs)
}

/// The control groups with the values of this variant.
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

/// The version row for the name of a kernel.
fn kernel(table: &Table) -> Result<&'static Version> {
    version_of(&table.require("kernel", "a kernel version such as \"6.12.0\"")?)
}

/// The version row for the name of a kernel.
pub(crate) fn version_of(value: &Value) -> Result<&'static Version> {
    let name = value.string("a kernel version such as \"6.12.0\"").map_err(|error| match value.json() {
        Json::Number(number) => error.hint(format!("a version is text: write \"{number}\", with the quotation marks")),
        _ => error,
    })?;
    if name == RUNNING {
        return running(value);
    }
    Version::find(name).map_err(|error| value.error(error.to_string()).hint(error.hint()))
}

/// The row of the kernel on which this program runs (for the agent in a guest, that is the guest's kernel).
fn running(value: &Value) -> Result<&'static Version> {
    let release = machine::release().map_err(|why| value.error(why))?;
    Version::of_release(&release).ok_or_else(|| {
        let names: Vec<&str> = Version::all().iter().map(|version| version.name).collect();
        let error = value.error(format!("the running kernel {release} is not modelled"));
        error.hint(format!("modelled versions: {}", names.join(", ")))
    })
}

/// Reads sysctls other than the scheduler's knobs; they become files below /proc/sys.
fn sysctl(table: &Table, settings: &mut RealSettings) -> Result<Map<String, Json>> {
    let mut shown = Map::new();
    let Some(value) = table.get("sysctl") else { return Ok(shown) };
    let all = value.table("a table such as { \"kernel.sched_autogroup_enabled\" = 0 }")?;
    for (name, value) in all.entries() {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !name.contains('.') || name.contains("..") || name.starts_with('.') || !name.chars().all(plain) {
            let error = all.key_error(name, format!("{} is not a sysctl", crate::error::quote(name)));
            return Err(error.expected("a full name such as \"kernel.sched_autogroup_enabled\""));
        }
        let number = value.integer(i64::MIN..=i64::MAX)?;
        settings.only_real(|| {
            let error = all.key_error(name, "sysctls are not simulated");
            error.hint("use --arm host or --arm vm; knobs, features and preempt are simulated as well")
        });
        shown.insert(name.to_owned(), number.into());
        settings.write(format!("/proc/sys/{}", name.replace('.', "/")), number.to_string());
    }
    Ok(shown)
}

/// The mount point of debugfs, which contains the scheduler's settings since 5.13.
const DEBUGFS: &str = "/sys/kernel/debug";

pub(crate) fn preempt(
    table: &Table,
    kernel: &mut KernelConfig,
    settings: &mut RealSettings,
) -> Result<Option<PreemptModel>> {
    let Some(value) = table.get("preempt") else { return Ok(None) };
    let text = value.string("a preemption model")?;
    let model = text.parse::<PreemptModel>().map_err(|error| refused(&value, &error))?;
    settings.accept(kernel.set_preempt(model), |error| refused(&value, error))?;
    settings.write(format!("{DEBUGFS}/sched/preempt"), model.name());
    Ok(Some(model))
}

fn features(table: &Table, kernel: &mut KernelConfig, settings: &mut RealSettings) -> Result<Map<String, Json>> {
    let mut shown = Map::new();
    let Some(value) = table.get("features") else { return Ok(shown) };
    let features = value.table("a table such as { RUN_TO_PARITY = false }")?;
    for (name, value) in features.entries() {
        settings.accept(kernel.set_feature(name, value.boolean()?), |error| refused_key(&features, name, error))?;
        shown.insert(name.to_owned(), value.boolean()?.into());
        let word = if value.boolean()? { name.to_owned() } else { format!("NO_{name}") };
        settings.write(format!("{DEBUGFS}/sched/features"), word);
    }
    Ok(shown)
}

pub(crate) fn knobs(
    table: &Table,
    kernel: &mut KernelConfig,
    settings: &mut RealSettings,
) -> Result<Map<String, Json>> {
    let mut shown = Map::new();
    let Some(value) = table.get("knobs") else { return Ok(shown) };
    let knobs = value.table("a table such as { base_slice = \"3ms\" }")?;
    let mut entries = knobs.entries();
    // The real-time runtime may not exceed the period, so the runtime is set first if it fits the current period.
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
        let result = kernel.set_knob(name, number);
        if matches!(result, Err(ConfigError::NotModelled { .. })) {
            // A real kernel accepts the value and checks later knobs against it.
            kernel.restore_knob(name, number).map_err(|error| refused_key(&knobs, name, &error))?;
        }
        settings.accept(result, |error| refused_key(&knobs, name, error))?;
        let canonical = Knob::find(name).map_or(name, |info| info.name);
        if shown.contains_key(canonical) {
            return Err(knobs.key_error(name, format!("the knob {canonical} is set twice")));
        }
        if let Some(info) = Knob::find(name) {
            settings.write(knob_file(info), number.to_string());
        }
        let is_time = Knob::find(name).is_some_and(|info| info.unit == KnobUnit::Nanos);
        shown.insert(canonical.to_owned(), if is_time { units::show_duration(number).into() } else { number.into() });
    }
    Ok(shown)
}

/// The file of a knob since 5.13: in debugfs, or a sysctl.
fn knob_file(info: &KnobInfo) -> String {
    match info.path.strip_prefix("kernel.") {
        Some(sysctl) => format!("/proc/sys/kernel/{sysctl}"),
        None => format!("{DEBUGFS}/{}", info.path),
    }
}

type Tasks<'a> = (Vec<(String, Attributes<'a>)>, Map<String, Json>);

/// The versions of the kernels of a variant.
#[derive(Clone, Copy)]
pub(crate) struct Versions<'v> {
    host: &'static Version,
    guests: &'v [Guest],
}

impl Versions<'_> {
    /// The version of the guest of this name; without a name that of the host.
    pub fn of(self, guest: Option<&str>) -> &'static Version {
        let found = self.guests.iter().find(|known| Some(known.name.as_str()) == guest);
        found.map_or(self.host, |guest| guest.run.kernel.version)
    }
}

impl Draft<'_> {
    /// The number of CPUs of the guest of this name; without a name `host`, that of the machine.
    pub fn cpus_of(&self, guest: Option<&str>, host: usize) -> usize {
        let found = self.guests.iter().find(|known| Some(known.name.as_str()) == guest);
        found.map_or(host, |guest| guest.run.machine.topology.nr_cpus())
    }

    /// The versions of its kernels.
    pub fn versions(&self) -> Versions<'_> {
        Versions { host: self.kernel.version, guests: &self.guests }
    }
}

fn tasks<'a>(
    table: &Table<'a>,
    versions: Versions,
    variant: &str,
    workloads: &[(&str, Option<&str>)],
) -> Result<Tasks<'a>> {
    let (mut tasks, mut shown) = (Vec::new(), Map::new());
    let Some(value) = table.get("tasks") else { return Ok((tasks, shown)) };
    let all = value.table("a table: tasks.WORKLOAD.slice and so on")?;
    for (workload, value) in all.entries() {
        let Some((_, guest)) = workloads.iter().find(|(name, _)| *name == workload) else {
            let error = all.key_error(workload, format!("unknown workload {}", crate::error::quote(workload)));
            let names = workloads.iter().map(|(name, _)| *name);
            return Err(error.expected("the name of a workload").hint(suggest(workload, names)));
        };
        let own = value.table("a table such as { slice = \"0.1ms\" }")?.only(&VARIANT_TASK)?;
        let attributes = Attributes::read(&own, &[], usize::MAX)?;
        attributes.check_kernel(versions.of(*guest), variant)?;
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

/// An error about a feature or knob; if this version does not have it, the hint lists those that do.
pub(crate) fn refused_key(table: &Table, name: &str, error: &ConfigError) -> Box<ScenarioError> {
    let supported_by: Vec<&str> = match error {
        ConfigError::UnknownFeature { .. } => {
            Version::all().iter().filter(|v| has_feature(v, name)).map(|v| v.name).collect()
        }
        ConfigError::UnknownKnob { .. } => {
            Version::all().iter().filter(|v| has_knob(v, name)).map(|v| v.name).collect()
        }
        _ => Vec::new(),
    };
    let hint = match &supported_by[..] {
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

/// Enables the bandwidth statistics, in all variants, of every group that any variant limits. Returns their paths.
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
