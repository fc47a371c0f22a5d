//! `[[variant]]`: the kernel, its settings, and the attributes of tasks and groups that the variant overrides.

use schedlab_model::suggest;
use schedlab_policy::{KernelConfig, Version};
use schedlab_spec::{Cgroup, CpuChange, Guest, Machine, Physics};
use serde_json::{json, Map, Value as Json};

use crate::attributes::Attributes;
use crate::cgroup;
use crate::distribution::Distribution;
use crate::error::{Result, ScenarioError};
use crate::guest;
use crate::hotplug;
use crate::kernel_settings::{self, features, knobs, preempt, sysctl, RealSettings};
use crate::keys::{VARIANT, VARIANT_TASK};
use crate::machine::{hz, switches};
use crate::naming::word;
use crate::units;
use crate::value::{Table, Value};

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
    /// CPUs that go offline and come back, with their places in the file.
    pub hotplug: Vec<(CpuChange, Value<'a>)>,
    /// The guests with the values of this variant.
    pub guests: Vec<Guest>,
    /// `sched_autogroup_enabled`.
    pub autogroup: bool,
    /// The name of its kernel in the file.
    pub named: String,
    /// Whose configuration the kernel has.
    pub distribution: Option<&'static Distribution>,
    /// The mechanisms of the machine.
    pub physics: Physics,
    /// The error for the first setting that only real kernels support.
    pub not_simulated: Option<Box<ScenarioError>>,
}

/// Reads a variant for this machine. Each workload comes with the guest that it runs in.
pub(crate) fn read<'a>(
    table: Table<'a>,
    machine: &Machine,
    workloads: &[(&str, Option<&str>)],
    groups: &[cgroup::Draft],
    guests: &[guest::Draft],
    hotplug_of_all: Option<Value<'a>>,
) -> Result<Draft<'a>> {
    let table = table.only(&VARIANT)?;
    let name = word(&table.require("name", "the name shown in results")?)?.to_owned();
    let named = kernel_settings::kernel(&table)?;
    let (version, distribution) = (named.version, named.distribution);
    let own_hz = table.get("hz").map(|value| hz(&value)).transpose()?;
    let hz = own_hz.or(distribution.map(|config| config.hz)).unwrap_or(machine.hz);
    let mut kernel = KernelConfig::new(version, machine.topology.nr_cpus(), hz);
    kernel_settings::configure(&[&table], &mut kernel, named)?;
    let mut settings = RealSettings::default();
    let mut changes = kernel_changes(&table, &mut kernel, &mut settings)?;
    changes.insert("hz".into(), own_hz.map_or(Json::Null, Json::from));
    let host = guest::Host { machine, kernel: &kernel, named, groups };
    let (guests, shown) = guest::of_variant(&table, guests, &host)?;
    if let Some(shown) = shown {
        changes.insert("guests".into(), shown);
    }
    let versions = Versions { host: version, guests: &guests };
    let (tasks, shown) = tasks(&table, versions, &name, workloads)?;
    changes.insert("tasks".into(), shown.into());
    let cgroups = cgroups(&table, version, &name, groups, &mut changes)?;
    let hotplug = match table.get("hotplug").or(hotplug_of_all) {
        Some(events) => hotplug::read(&events, machine.topology.nr_cpus())?,
        None => Vec::new(),
    };
    if !hotplug.is_empty() {
        changes.insert("hotplug".into(), hotplug::show(&hotplug));
    }
    if let Some(value) = table.get("workloads") {
        changes.insert("workloads".into(), value.json());
    }
    let autogroup = autogroup(&table, distribution, &mut settings, &mut changes)?;
    let physics = physics(&table, machine, &mut changes)?;
    check_governor(&table, physics, version)?;
    check_frequency(&table, physics, &guests)?;
    let sysctl = sysctl(&table, &mut settings)?;
    if !sysctl.is_empty() {
        changes.insert("sysctl".into(), sysctl.into());
    }
    let RealSettings { files: settings, not_simulated } = settings;
    Ok(Draft {
        name,
        kernel,
        changes: changes.into(),
        settings,
        tasks,
        cgroups,
        hotplug,
        guests,
        autogroup,
        named: table.get("kernel").and_then(|value| value.as_string()).unwrap_or_default().to_owned(),
        distribution,
        physics,
        not_simulated,
    })
}

/// Configures the kernel; returns what differs from its defaults.
fn kernel_changes(table: &Table, kernel: &mut KernelConfig, settings: &mut RealSettings) -> Result<Map<String, Json>> {
    let preempt = preempt(table, kernel, settings)?;
    let mut changes = Map::new();
    changes.insert("features".into(), features(table, kernel, settings)?.into());
    changes.insert("knobs".into(), knobs(table, kernel, settings)?.into());
    changes.insert("preempt".into(), preempt.map_or(Json::Null, |model| model.name().into()));
    Ok(changes)
}

/// Whether sessions are groups.
fn autogroup(
    table: &Table,
    distribution: Option<&Distribution>,
    settings: &mut RealSettings,
    changes: &mut Map<String, Json>,
) -> Result<bool> {
    let enabled = match (table.get("autogroup"), distribution) {
        (Some(value), _) => value.boolean()?,
        (None, Some(distribution)) => distribution.autogroup,
        (None, None) => return Ok(false),
    };
    if table.get("autogroup").is_some() {
        changes.insert("autogroup".into(), enabled.into());
    }
    settings.write("/proc/sys/kernel/sched_autogroup_enabled", u8::from(enabled).to_string());
    Ok(enabled)
}

/// TEO is refused where it would not run: without a governor, and on kernels whose form of it is not modelled.
fn check_governor(table: &Table, physics: Physics, version: &'static Version) -> Result<()> {
    let refuse = |text: String| match table.get("physics") {
        Some(value) => value.error(text),
        None => table.error(text),
    };
    if physics.teo && !physics.cpuidle {
        return Err(
            refuse("TEO is a governor of cpuidle, which is switched off".into()).hint("set cpuidle = true, too")
        );
    }
    if physics.teo && version.teo().is_none() {
        let text = format!("the form of TEO that kernel {} has is not modelled", version.name);
        return Err(refuse(text).expected("menu, or a kernel from 5.14 to 6.2 or of the 6.12 series"));
    }
    Ok(())
}

/// schedutil is refused where frequencies do not change, and these where guests run, whose speed follows from the
/// host's CPUs.
fn check_frequency(table: &Table, physics: Physics, guests: &[Guest]) -> Result<()> {
    let refuse = |text: &str| match table.get("physics") {
        Some(value) => value.error(text),
        None => table.error(text),
    };
    if physics.schedutil && !physics.frequency {
        return Err(refuse("schedutil is a governor of frequencies, which are switched off")
            .hint("set frequency = true, too, on a machine with [frequency]"));
    }
    if physics.frequency && !guests.is_empty() {
        return Err(refuse("guests on CPUs whose frequency changes are not modelled").hint("set frequency = false"));
    }
    Ok(())
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
    switches(
        &own,
        machine.physics,
        (&machine.costs, machine.caches.as_ref(), machine.memory, machine.frequency.as_ref()),
    )
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
            return Err(error.expected("the name of a workload").hint(meant(workload, workloads)));
        };
        let own = value.table("a table such as { slice = \"0.1ms\" }")?.only(&VARIANT_TASK)?;
        let attributes = Attributes::read(&own, &[], usize::MAX)?;
        attributes.check_kernel(versions.of(*guest), variant)?;
        shown.insert(workload.to_owned(), show(&attributes));
        tasks.push((workload.to_owned(), attributes));
    }
    Ok((tasks, shown))
}

/// The workload that may be meant. TOML divides a name with a dot that is not quoted.
fn meant(name: &str, workloads: &[(&str, Option<&str>)]) -> String {
    let names = || workloads.iter().map(|(name, _)| *name);
    let divided = names().find(|full| full.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')));
    match divided {
        Some(full) => format!("quote a name with a dot: tasks.\"{full}\""),
        None => suggest(name, names()),
    }
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
