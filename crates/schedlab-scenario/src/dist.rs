//! The forms of a distribution: a duration, `{ constant = .. }`, `{ quantiles = .. }` and the named families.

use schedlab_model::{Nanos, SEC};
use schedlab_workload::verbs::Length;
use schedlab_workload::Dist;

use crate::error::Result;
use crate::units;
use crate::value::{Table, Value};

/// The form of a step's length, for messages.
pub(crate) const LENGTH: &str = "a duration such as \"10ms\", or a table with one of constant, uniform, exponential, \
     lognormal, normal, quantiles, recorded";

const FAMILIES: &[&str] = &["constant", "uniform", "exponential", "lognormal", "normal", "quantiles", "recorded"];
const LONGEST: Nanos = 24 * 3600 * SEC;

/// Reads the length of a step: constant, or drawn each time.
pub(crate) fn amount(value: &Value) -> Result<Length> {
    Ok(match length(value)? {
        Dist::Constant(ns) => Length::Fixed(ns),
        dist => Length::Drawn(dist),
    })
}

/// Reads a length in a program. A plain duration is constant.
pub(crate) fn length(value: &Value) -> Result<Dist> {
    if value.as_string().is_some() {
        return Ok(Dist::Constant(value.duration(0..=LONGEST)?));
    }
    let table = value.table(LENGTH)?.only_these(FAMILIES, "a length")?;
    let [(family, parameters)] = &table.entries()[..] else {
        return Err(table.error("the table must have exactly one key").expected(LENGTH));
    };
    let dist = match *family {
        "uniform" => {
            let [low, high] = &parameters.array(PAIR)?[..] else { return Err(parameters.error(PAIR)) };
            Dist::Uniform { low: low.duration(0..=LONGEST)?, high: high.duration(0..=LONGEST)? }
        }
        "exponential" => Dist::Exponential { mean: parameters.duration(0..=LONGEST)? },
        "lognormal" => {
            let table =
                parameters.table("a table with median and sigma")?.only_these(&["median", "sigma"], "lognormal")?;
            let sigma = table.require("sigma", "the standard deviation of the logarithm, such as 0.5")?;
            Dist::Lognormal { median: duration_of(&table, "median")?, sigma: sigma.number(0.0..=10.0)? }
        }
        "normal" => {
            let table = parameters.table("a table with mean and sd")?.only_these(&["mean", "sd"], "normal")?;
            Dist::Normal { mean: duration_of(&table, "mean")?, sd: duration_of(&table, "sd")? }
        }
        "recorded" => recorded(parameters)?,
        _ => return constant_or_quantiles_up_to(LONGEST, &table),
    };
    dist.validate().map_err(|error| parameters.error(error.to_string()))?;
    Ok(dist)
}

/// Reads durations that white space separates, in one string: a recording has thousands of them.
fn recorded(value: &Value) -> Result<Dist> {
    const FORM: &str = "durations in one string, such as \"10us 12us 9us\"";
    let lengths = value.string(FORM)?.split_ascii_whitespace().map(|word| {
        let ns = units::duration(word).map_err(|(why, hint)| value.error(format!("\"{word}\": {why}")).hint(hint))?;
        (ns <= LONGEST).then_some(ns).ok_or_else(|| value.error(format!("\"{word}\" is more than 24h")).expected(FORM))
    });
    Ok(Dist::Recorded(lengths.collect::<Result<_>>()?))
}

const PAIR: &str = "an array of the smallest and the largest duration";

/// Reads the `constant` or `quantiles` of a table that may have other keys; no value may exceed `longest`.
pub(crate) fn constant_or_quantiles_up_to(longest: Nanos, table: &Table) -> Result<Dist> {
    match (table.get("constant"), table.get("quantiles")) {
        (Some(constant), None) => Ok(Dist::Constant(constant.duration(0..=longest)?)),
        (None, Some(quantiles)) => spread(longest, &quantiles),
        (Some(_), Some(_)) => Err(table.error("both constant and quantiles are given").expected("one of them")),
        (None, None) => Err(table.error("neither constant nor quantiles is given").expected("one of them")),
    }
}

fn spread(longest: Nanos, value: &Value) -> Result<Dist> {
    const FORM: &str = "a table such as { p0 = \"1us\", p50 = \"2us\", p100 = \"9us\" }";
    let mut points = Vec::new();
    for (name, value) in value.table(FORM)?.entries() {
        let rank =
            per_mille(name).ok_or_else(|| value.error(format!("\"{name}\" is not a quantile")).expected(FORM))?;
        points.push((rank, value.duration(0..=longest)?));
    }
    points.sort_unstable_by_key(|point| point.0);
    let dist = Dist::Quantiles(points);
    dist.validate().map_err(|error| value.error(error.to_string()))?;
    Ok(dist)
}

/// `p99.5` as 995.
fn per_mille(name: &str) -> Option<u16> {
    let (whole, tenth) = name.strip_prefix('p')?.split_once('.').unwrap_or((name.strip_prefix('p')?, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u16>().ok())?;
    let rank = digits(whole)?.checked_mul(10)?.checked_add(digits(tenth).filter(|_| tenth.len() == 1)?)?;
    (rank <= 1000).then_some(rank)
}

fn duration_of(table: &Table, key: &str) -> Result<Nanos> {
    table.require(key, crate::units::DURATION)?.duration(0..=LONGEST)
}

#[cfg(test)]
mod tests {
    use super::per_mille;

    #[test]
    fn quantile_names() {
        for (name, want) in [("p0", Some(0)), ("p50", Some(500)), ("p99.9", Some(999)), ("p100", Some(1000))] {
            assert_eq!(per_mille(name), want, "{name}");
        }
        for name in ["", "p", "50", "p101", "p100.1", "p99.99", "p+5", "p99999999"] {
            assert_eq!(per_mille(name), None, "{name}");
        }
    }
}
