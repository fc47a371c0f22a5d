//! The kernel of a host or guest and its settings: version, preemption model, features, knobs and other sysctls.
//!
//! Each reader also collects what a real kernel is set to: files and the values to write to them.

use schedlab_model::closest;
use schedlab_policy::{ConfigError, Feature, KernelConfig, Knob, KnobInfo, KnobUnit, PreemptModel, Version};
use serde_json::{Map, Value as Json};

use crate::distribution::{self, Named};
use crate::error::{Result, ScenarioError};
use crate::machine;
use crate::units;
use crate::value::{Table, Value};

/// The kernel name that selects the row of this machine's kernel.
const RUNNING: &str = "running";

/// The settings of a variant on real kernels, collected while it is read.
#[derive(Default)]
pub(crate) struct RealSettings {
    /// Files and the values to write to them.
    pub files: Vec<(String, String)>,
    /// The error for the first setting that the simulator does not support.
    pub not_simulated: Option<Box<ScenarioError>>,
}

impl RealSettings {
    /// Adds a file and the value to write to it.
    pub fn write(&mut self, file: impl Into<String>, value: impl Into<String>) {
        self.files.push((file.into(), value.into()));
    }

    /// Passes on the error of a setting, except that a setting which is not modelled is refused only when it is
    /// simulated.
    pub fn accept(
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

    /// Notes the error for a setting that only real kernels support.
    pub fn only_real(&mut self, why: impl FnOnce() -> Box<ScenarioError>) {
        self.not_simulated = self.not_simulated.take().or_else(|| Some(why()));
    }
}

/// The kernel that a table requires, with the configuration that the table names.
pub(crate) fn kernel(table: &Table) -> Result<Named> {
    let named = kernel_of(&table.require("kernel", "a kernel version such as \"6.12.0\"")?)?;
    with_config(table, named)
}

/// The kernel with the configuration that a table names, if it names one.
pub(crate) fn with_config(table: &Table, named: Named) -> Result<Named> {
    match table.get("config") {
        Some(value) => Ok(Named { distribution: Some(distribution::of_value(&value)?), ..named }),
        None => Ok(named),
    }
}

/// Configures a kernel as its distribution does, but for what the tables say themselves.
pub(crate) fn configure(tables: &[&Table], kernel: &mut KernelConfig, named: Named) -> Result<()> {
    let (Some(distribution), Some(table)) = (named.distribution, tables.last()) else { return Ok(()) };
    let own_preempt = tables.iter().any(|table| table.get("preempt").is_some());
    distribution.apply(kernel, own_preempt).map_err(|refused| {
        let error = table.error(format!("the configuration of {}: {refused}", distribution.id));
        error.hint("set the key itself, such as preempt = \"lazy\", or name another kernel")
    })
}

/// The kernel of a name.
pub(crate) fn kernel_of(value: &Value) -> Result<Named> {
    let name = value.string("a kernel version such as \"6.12.0\"").map_err(|error| match value.json() {
        Json::Number(number) => {
            error.hint(format!("a version is a string: write \"{number}\", with the quotation marks"))
        }
        _ => error,
    })?;
    if name == RUNNING {
        return Ok(Named { version: running(value)?, distribution: None });
    }
    distribution::named(name, |message| value.error(message))
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
pub(crate) fn sysctl(table: &Table, settings: &mut RealSettings) -> Result<Map<String, Json>> {
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

/// Reads the preemption model.
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

/// Reads the features of the scheduler.
pub(crate) fn features(
    table: &Table,
    kernel: &mut KernelConfig,
    settings: &mut RealSettings,
) -> Result<Map<String, Json>> {
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

/// Reads the knobs, in an order in which a real kernel accepts them.
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
        [] => error.hint().or_else(|| elsewhere(error)).unwrap_or_default(),
        versions => format!("kernels that have it: {}", versions.join(", ")),
    };
    table.key_error(name, error.to_string()).hint(hint)
}

/// The nearest name that other kernels have.
fn elsewhere(error: &ConfigError) -> Option<String> {
    let near = match error {
        ConfigError::UnknownFeature { name, .. } => closest(name, Feature::all().iter().map(|info| info.name)),
        ConfigError::UnknownKnob { name, .. } => closest(name, Knob::all().iter().map(|info| info.name)),
        _ => None,
    };
    near.map(|near| format!("did you mean {near}, which this kernel does not have?"))
}

fn has_feature(version: &Version, name: &str) -> bool {
    Feature::find(name).is_some_and(|feature| feature.info().default_in(version).is_some())
}

fn has_knob(version: &Version, name: &str) -> bool {
    Knob::find(name).is_some_and(|info| info.exists_in(version))
}
