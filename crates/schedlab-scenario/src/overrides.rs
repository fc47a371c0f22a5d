//! What the command line overrides in a scenario.

use schedlab_model::{suggest, Nanos, SEC};
use serde_json::Value as Json;

use crate::error::{quote, Result, ScenarioError};
use crate::grouping::Grouping;
use crate::set::Set;

/// The overrides; `None` keeps the value of the scenario.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Overrides {
    /// Seeds.
    pub seeds: Option<Seeds>,
    /// Single keys, in the order in which they apply.
    pub sets: Vec<Set>,
    /// Factors for costs of the machine, by name.
    pub costs: Vec<(String, f64)>,
    /// Which draw breaks the ties that the kernel leaves to chance.
    pub ties: Option<u64>,
    /// How the tasks are grouped instead.
    pub grouping: Option<Grouping>,
}

/// The seeds of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seeds {
    /// The seeds from 1 to this number.
    Count(u64),
    /// A list of seeds.
    List(Vec<u64>),
}

/// The maximum number of seeds of a comparison.
pub(crate) const MOST_SEEDS: u64 = 10_000;

/// The maximum duration of a run.
pub(crate) const LONGEST_RUN: Nanos = 24 * 3600 * SEC;

impl Seeds {
    /// The list of seeds. The error is a message.
    pub(crate) fn all(&self) -> std::result::Result<Vec<u64>, String> {
        match self {
            Seeds::Count(count) if (1..=MOST_SEEDS).contains(count) => Ok((1..=*count).collect()),
            Seeds::Count(count) => Err(format!("{count} seeds: out of range")),
            Seeds::List(seeds) => {
                let mut sorted = seeds.clone();
                sorted.sort_unstable();
                match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                    Some(pair) => Err(format!("the seed {} is listed twice", pair[0])),
                    None if seeds.is_empty() || seeds.len() as u64 > MOST_SEEDS => {
                        Err(format!("{} seeds: out of range", seeds.len()))
                    }
                    None => Ok(seeds.clone()),
                }
            }
        }
    }
}

const KEYS: [&str; 8] = ["seeds", "set", "duration", "machine", "noise", "costs", "ties", "grouping"];

/// The largest factor for a cost; the smallest is its reciprocal.
const LARGEST_FACTOR: f64 = 100.0;

impl Overrides {
    /// Reads a JSON object such as `{"seeds": 5, "set": ["knobs.base_slice=3ms"], "duration": "5s", "machine":
    /// "laptop-8", "noise": false, "costs": {"tick": 1.5}, "ties": 3, "grouping": "none"}`, where `seeds` may also be a
    /// list. Each text of `set` is a [`Set`]; the three keys after it have precedence. Keys that are null or missing
    /// change nothing.
    pub fn from_json(text: Option<&str>) -> Result<Self> {
        let Some(text) = text else { return Ok(Overrides::default()) };
        let json: Json = serde_json::from_str(text).map_err(|error| wrong("", format!("not valid JSON: {error}")))?;
        let Json::Object(object) = json else { return Err(wrong("", "not a JSON object".into())) };
        let (mut overrides, mut own) = (Overrides::default(), Vec::new());
        for (key, value) in &object {
            match (key.as_str(), value) {
                (_, Json::Null) => {}
                ("seeds", value) => overrides.seeds = Some(seeds(value)?),
                ("set", Json::Array(items)) => own = items.iter().map(set).collect::<Result<_>>()?,
                ("duration" | "machine", Json::String(_)) | ("noise", Json::Bool(_)) => {
                    overrides.sets.push(Set::flag(key, value));
                }
                ("costs", Json::Object(costs)) => {
                    overrides.costs =
                        costs.iter().map(|(name, f)| Ok((name.clone(), factor(name, f)?))).collect::<Result<_>>()?;
                }
                ("ties", Json::Number(draw)) if draw.is_u64() => overrides.ties = draw.as_u64(),
                ("grouping", Json::String(name)) if Grouping::find(name).is_some() => {
                    overrides.grouping = Grouping::find(name);
                }
                (key, value) if KEYS.contains(&key) => return Err(wrong(key, format!("{value} is not valid here"))),
                (key, _) => return Err(wrong(key, format!("unknown key {}", quote(key))).hint(suggest(key, KEYS))),
            }
        }
        overrides.sets.splice(0..0, own);
        Ok(overrides)
    }
}

fn set(value: &Json) -> Result<Set> {
    let text =
        value.as_str().ok_or_else(|| wrong("set", format!("{value} is not valid here")).expected("KEY=VALUE"))?;
    Set::parse(text)
}

fn seeds(value: &Json) -> Result<Seeds> {
    let form = || wrong("seeds", format!("{value} is not valid here")).expected("a count or a list of numbers");
    match value {
        Json::Array(items) => {
            Ok(Seeds::List(items.iter().map(|item| item.as_u64().ok_or_else(form)).collect::<Result<_>>()?))
        }
        other => other.as_u64().map(Seeds::Count).ok_or_else(form),
    }
}

fn factor(cost: &str, value: &Json) -> Result<f64> {
    let found = value.as_f64().filter(|factor| (1.0 / LARGEST_FACTOR..=LARGEST_FACTOR).contains(factor));
    found.ok_or_else(|| {
        wrong(&format!("costs.{cost}"), format!("{value} is not valid here"))
            .expected(format!("a factor from {} to {LARGEST_FACTOR}", 1.0 / LARGEST_FACTOR))
    })
}

/// An error about the command line.
pub(crate) fn wrong(key: &str, message: String) -> Box<ScenarioError> {
    ScenarioError::new("command line", key, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_a_command_line() {
        let all = Overrides::from_json(Some(
            r#"{"seeds": [3, 1], "duration": "2s", "machine": "rpi4", "noise": null, "ties": 3, "grouping": "none"}"#,
        ));
        let want = Overrides {
            seeds: Some(Seeds::List(vec![3, 1])),
            sets: vec![Set::flag("duration", &"2s".into()), Set::flag("machine", &"rpi4".into())],
            costs: vec![],
            ties: Some(3),
            grouping: Some(Grouping::None),
        };
        assert_eq!(all.unwrap(), want);
        let bad = [
            ("[1]", "command line: not a JSON object"),
            ("{\"seeds\": -1}", "command line: seeds: -1 is not valid here; expected a count or a list of numbers"),
            ("{\"ties\": -1}", "command line: ties: -1 is not valid here"),
            ("{\"noise\": \"no\"}", "command line: noise: \"no\" is not valid here"),
            (
                "{\"costs\": {\"tick\": 0}}",
                "command line: costs.tick: 0 is not valid here; expected a factor from 0.01 to 100",
            ),
            ("{\"sedes\": 1}", "command line: sedes: unknown key \"sedes\""),
        ];
        for (text, want) in bad {
            assert_eq!(Overrides::from_json(Some(text)).unwrap_err().to_string(), want);
        }
        assert!(Overrides::from_json(Some("{")).unwrap_err().message.starts_with("not valid JSON"));
    }

    #[test]
    fn seeds_are_distinct_and_few() {
        assert_eq!(Seeds::Count(3).all(), Ok(vec![1, 2, 3]));
        assert_eq!(Seeds::List(vec![7, 7]).all(), Err("the seed 7 is listed twice".into()));
        assert!(Seeds::Count(0).all().is_err() && Seeds::Count(1 << 40).all().is_err());
        assert!(Seeds::List(vec![]).all().is_err());
    }
}
