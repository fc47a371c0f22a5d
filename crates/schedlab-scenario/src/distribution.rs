//! The kernels of distributions: which row they are, and how they are configured and booted.
//!
//! A kernel's name in a scenario is a row of mainline or a stable series (`6.1`), which has the defaults of its
//! Kconfig, a distribution (`debian-12`), or the release of a distribution's kernel as `uname -r` prints it
//! (`6.1.0-18-amd64`); the last two have the distribution's configuration.

use std::sync::OnceLock;

use schedlab_model::{closest, suggest};
use schedlab_policy::{ConfigError, KernelConfig, PreemptModel, Version};
use serde_json::{json, Map, Value as Json};

use crate::error::{quote, Result, ScenarioError};
use crate::keys::DISTRIBUTION;
use crate::machine::hz;
use crate::text::Text;
use crate::value::{Table, Value};

/// A distribution's kernel as it boots there.
#[derive(Debug)]
pub(crate) struct Distribution {
    pub id: &'static str,
    pub summary: String,
    /// The row of its kernel, or why there is none.
    row: std::result::Result<&'static Version, String>,
    /// Patterns of its releases: `#` stands for a number, `*` for anything.
    releases: Vec<String>,
    pub preempt: PreemptModel,
    pub hz: u32,
    /// Whether sessions are groups (CONFIG_SCHED_AUTOGROUP, which boots enabled).
    pub autogroup: bool,
    /// Features that differ from the kernel's.
    features: Vec<(String, bool)>,
    /// Knobs that differ from the kernel's.
    knobs: Vec<(String, u64)>,
    pub source: String,
}

/// A kernel as a scenario names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub version: &'static Version,
    /// Whose configuration it has; none: Kconfig's defaults.
    pub distribution: Option<&'static Distribution>,
}

macro_rules! shipped {
    ($($id:literal,)+) => {
        &[$(($id, include_str!(concat!("../../../distributions/", $id, ".toml"))),)+]
    };
}

/// The shipped ones, embedded into the program.
const SHIPPED: &[(&str, &str)] = shipped![
    "debian-11",
    "debian-12",
    "debian-12-backports",
    "debian-13",
    "debian-13-backports",
    "debian-unstable",
    "fedora-37",
    "fedora-39",
    "fedora-40",
    "rhel-8",
    "rhel-9",
    "ubuntu-24.04",
];

/// All distributions by name.
pub(crate) fn all() -> Result<&'static [Distribution]> {
    static ALL: OnceLock<Result<Vec<Distribution>>> = OnceLock::new();
    let read = || SHIPPED.iter().map(|(id, text)| read(id, text)).collect();
    ALL.get_or_init(read).as_deref().map_err(Clone::clone)
}

/// The kernel of this name: a row, a distribution, or the release of a distribution's kernel.
pub(crate) fn named(name: &str, error: impl Fn(String) -> Box<ScenarioError>) -> Result<Named> {
    // The release of a distribution's kernel brings its configuration; any other one is that of a row alone.
    let of_release = all()?.iter().find(|known| known.releases.iter().any(|pattern| matches(pattern, name)));
    if let Some(found) = of_release.filter(|_| name.contains(['-', '+'])) {
        return found.row(Some(name), &error);
    }
    let packaged = name.starts_with(|c: char| c.is_ascii_digit()) && name.contains(['-', '+']);
    let row_error = match Version::find(name) {
        Ok(version) if packaged => {
            let what = "no distribution in the list has this release, so its configuration is not known";
            let hint =
                format!("kernel = \"{}\", the row of that release, with the config of a distribution", version.name);
            return Err(error(format!("unknown kernel version \"{name}\": {what}")).hint(hint));
        }
        Ok(version) => return Ok(Named { version, distribution: None }),
        Err(unknown) => unknown,
    };
    let ids = || SHIPPED.iter().map(|(id, _)| *id);
    if let Some(found) = all()?.iter().find(|known| known.id == name) {
        return found.row(None, &error);
    }
    if let Some(found) = of_release {
        return found.row(Some(name), &error);
    }
    let near = closest(name, ids());
    let hint = match near.filter(|_| row_error.nearest.is_empty()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None if row_error.nearest.is_empty() => {
            format!("{}; distributions: {}", row_error.hint(), ids().collect::<Vec<_>>().join(", "))
        }
        None => row_error.hint(),
    };
    Err(error(row_error.to_string()).hint(hint))
}

/// The distribution that the key `config` names.
pub(crate) fn of_value(value: &Value) -> Result<&'static Distribution> {
    let name = value.string("a distribution such as \"debian-12\"")?;
    all()?.iter().find(|known| known.id == name).ok_or_else(|| {
        let error = value.error(format!("unknown distribution {}", quote(name)));
        error
            .expected("a name that `schedlab list distributions` shows")
            .hint(suggest(name, SHIPPED.iter().map(|(id, _)| *id)))
    })
}

impl Distribution {
    /// The row of its kernel, or of the given release of it.
    fn row(&'static self, release: Option<&str>, error: &impl Fn(String) -> Box<ScenarioError>) -> Result<Named> {
        let own = self.row.as_ref().map(|row| release.and_then(Version::of_release).unwrap_or(row));
        match own {
            Ok(version) => Ok(Named { version, distribution: Some(self) }),
            Err(why) => Err(error(format!("the kernel of {} is not modelled: {why}", self.summary))
                .hint(format!("a row with its configuration alone: kernel = \"6.1\", config = \"{}\"", self.id))),
        }
    }

    /// Configures a kernel as the distribution does, but for the preemption model if the variant has one of its own.
    ///
    /// # Errors
    /// If the kernel does not have the preemption model, a feature or a knob.
    pub fn apply(&self, kernel: &mut KernelConfig, own_preempt: bool) -> std::result::Result<(), ConfigError> {
        if !own_preempt {
            kernel.set_preempt(self.preempt)?;
        }
        self.features.iter().try_for_each(|(name, on)| kernel.set_feature(name, *on))?;
        self.knobs.iter().try_for_each(|(name, value)| kernel.set_knob(name, *value))
    }

    fn show(&self) -> Json {
        let row = self.row.as_ref().ok().map(|row| row.name);
        json!({
            "id": self.id, "summary": self.summary, "row": row, "no_row": self.row.as_ref().err(),
            "releases": self.releases, "preempt": self.preempt.name(), "hz": self.hz, "autogroup": self.autogroup,
            "features": shown(&self.features), "knobs": shown(&self.knobs),
            "source": self.source,
        })
    }
}

fn shown<T: Copy + Into<Json>>(pairs: &[(String, T)]) -> Map<String, Json> {
    pairs.iter().map(|(name, value)| (name.clone(), (*value).into())).collect()
}

/// All of them for `schedlab list distributions`.
pub(crate) fn listing() -> Result<Json> {
    Ok(all()?.iter().map(Distribution::show).collect())
}

fn read(id: &'static str, text: &str) -> Result<Distribution> {
    let file = format!("distributions/{id}.toml");
    let text = Text::new(&file, text.as_bytes())?;
    let document = text.parse()?;
    let table = Table::root(&text, &document).only(&DISTRIBUTION)?;
    let required = |key: &str| table.require(key, "see docs/scenario.md");
    let string = |key: &str| Ok::<_, Box<ScenarioError>>(required(key)?.string("a string")?.to_owned());
    let row = match table.get("no-row") {
        Some(why) => Err(why.string("why there is no row")?.to_owned()),
        None => {
            let name = required("row")?;
            let found = Version::find(name.string("a row")?);
            Ok(found.map_err(|error| name.error(error.to_string()).hint(error.hint()))?)
        }
    };
    let releases = required("releases")?.array("patterns of uname -r")?;
    let preempt = required("preempt")?;
    let model = preempt.string("a preemption model")?.parse::<PreemptModel>();
    let found = Distribution {
        id,
        summary: string("summary")?,
        releases: releases.iter().map(|value| Ok(value.string("a pattern")?.to_owned())).collect::<Result<_>>()?,
        preempt: model.map_err(|error| preempt.error(error.to_string()))?,
        hz: hz(&required("hz")?)?,
        autogroup: required("autogroup")?.boolean()?,
        features: pairs(&table, "features", |value| value.boolean())?,
        knobs: pairs(&table, "knobs", |value| Ok(value.integer(0..=i64::MAX)? as u64))?,
        source: string("source")?,
        row,
    };
    if let Ok(version) = found.row {
        let mut kernel = KernelConfig::new(version, 1, found.hz);
        found.apply(&mut kernel, false).map_err(|error| preempt.error(error.to_string()))?;
    }
    Ok(found)
}

fn pairs<T>(table: &Table, key: &str, read: impl Fn(&Value) -> Result<T>) -> Result<Vec<(String, T)>> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let table = value.table("a table")?;
    table.entries().iter().map(|(name, value)| Ok(((*name).to_owned(), read(value)?))).collect()
}

/// Whether a release fits a pattern: `#` stands for one or more digits, `*` for anything.
fn matches(pattern: &str, release: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return release.is_empty() };
    let rest = &pattern[first.len_utf8()..];
    let ends = |most: usize| (0..=most).filter(|at| release.is_char_boundary(*at));
    match first {
        '#' => {
            let digits = release.bytes().take_while(u8::is_ascii_digit).count();
            digits > 0 && matches(rest, &release[digits..])
        }
        '*' => ends(release.len()).any(|at| matches(rest, &release[at..])),
        _ => release.strip_prefix(first).is_some_and(|release| matches(rest, release)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> std::result::Result<(&'static str, Option<&'static str>), String> {
        let error = |message: String| ScenarioError::new("s.toml", "kernel", message);
        let found =
            named(text, error).map_err(|error| format!("{error} {}", error.hint.clone().unwrap_or_default()))?;
        Ok((found.version.name, found.distribution.map(|distribution| distribution.id)))
    }

    #[test]
    fn a_name_is_a_row_a_distribution_or_a_release_of_one() {
        for (text, row, distribution) in [
            ("6.1", "6.1", None),
            ("6.12", "6.12.107", None),
            ("debian-11", "5.10", Some("debian-11")),
            ("debian-12", "6.1", Some("debian-12")),
            ("6.1.0-18-amd64", "6.1", Some("debian-12")),
            ("6.12.107+deb13-amd64", "6.12.107", Some("debian-13")),
            ("6.12.43+deb13-amd64", "6.12.43", Some("debian-13")),
            ("6.12.115+deb13.1-amd64", "6.12.107", Some("debian-13")),
            ("6.12.95+deb12-amd64", "6.12.107", Some("debian-12-backports")),
            ("7.2.12+deb13-amd64", "7.2", Some("debian-13-backports")),
            ("6.8.0-31-generic", "6.8", Some("ubuntu-24.04")),
            ("6.8.5-301.fc40.x86_64", "6.8", Some("fedora-40")),
        ] {
            assert_eq!(name(text), Ok((row, distribution)), "{text}");
        }
        for (text, says) in [
            ("rhel-9", "not modelled: its scheduler is 5.14 with changes"),
            ("5.14.0-362.24.1.el9_3.x86_64", "config = \"rhel-9\""),
            ("debian-21", "did you mean \"debian-11\"?"),
            ("6.1.0-0.deb11.48-amd64", "kernel = \"6.1\", the row of that release"),
            ("gentoo", "distributions: debian-11"),
        ] {
            let error = name(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn every_distribution_can_be_configured_and_names_its_source() {
        let all = all().unwrap();
        assert_eq!(all.len(), SHIPPED.len());
        for one in all {
            assert!(one.source.contains("CONFIG_HZ") && one.source.contains("AUTOGROUP"), "{}", one.id);
            assert!(one.releases.iter().all(|pattern| pattern.contains('#') || pattern.contains('*')), "{}", one.id);
        }
        let settings = |id: &str| all.iter().find(|one| one.id == id).map(|one| (one.preempt, one.hz)).unwrap();
        assert_eq!(settings("debian-12"), (PreemptModel::Voluntary, 250));
        assert_eq!(settings("debian-13-backports"), (PreemptModel::Lazy, 250));
        assert_eq!(settings("ubuntu-24.04"), (PreemptModel::Voluntary, 1000));
    }
}
