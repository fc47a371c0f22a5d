//! Numbers with units, such as `"10s"`, `"0.1ms"` and `"2%"`. Times are exact integers.

use schedlab_model::{Nanos, MSEC, SEC, USEC};

/// The form of a duration, for messages.
pub(crate) const DURATION: &str = "a duration such as \"10ms\" (a number and one of ns us ms s min h)";
/// The form of a percentage, for messages.
pub(crate) const PERCENT: &str = "a percentage such as \"2%\"";

const UNITS: &[(&str, Nanos)] = &[
    ("ns", 1),
    ("us", USEC),
    ("\u{b5}s", USEC),
    ("\u{3bc}s", USEC),
    ("ms", MSEC),
    ("s", SEC),
    ("min", 60 * SEC),
    ("h", 3600 * SEC),
];

/// Parses a duration to ns. The error is a message and a hint.
pub(crate) fn duration(text: &str) -> Result<Nanos, (String, String)> {
    let (number, unit) = split(text);
    let scale = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, scale)) => *scale,
        None if number.is_empty() => return Err(("the number is missing".into(), String::new())),
        None if unit.is_empty() => {
            return Err(("the unit is missing".into(), format!("write \"{number}ms\" or \"{number}s\"")))
        }
        None => return Err((format!("unknown unit \"{unit}\""), unit_hint(unit))),
    };
    if number.starts_with('-') {
        return Err(("a duration cannot be negative".into(), String::new()));
    }
    let (whole, part) =
        decimal(number).ok_or_else(|| (format!("\"{number}\" is not a decimal number"), String::new()))?;
    let whole = whole.parse::<u64>().ok().or(whole.is_empty().then_some(0)).and_then(|n| n.checked_mul(scale));
    let total = whole.and_then(|ns| ns.checked_add(fraction(part, scale)?));
    total.ok_or_else(|| ("this is not a whole number of nanoseconds below 2^64".into(), String::new()))
}

/// Parses a percentage, which may exceed 100. The error is a message and a hint.
pub(crate) fn percent(text: &str) -> Result<f64, (String, String)> {
    let Some(number) = text.trim().strip_suffix('%') else {
        return Err(("the % sign is missing".into(), format!("write \"{}%\"", text.trim())));
    };
    let number = number.trim();
    let valid = decimal(number).and_then(|_| number.parse::<f64>().ok()).filter(|value| value.is_finite());
    valid.ok_or_else(|| (format!("\"{number}\" is not a positive decimal number"), String::new()))
}

/// Formats a duration in the largest unit in which it is a short exact number.
pub(crate) fn show_duration(ns: Nanos) -> String {
    let fits = |scale: Nanos| ns >= scale && ns % scale == 0;
    match ns {
        0 => "0s".into(),
        _ if fits(3600 * SEC) => format!("{}h", ns / (3600 * SEC)),
        _ if fits(SEC) => format!("{}s", ns / SEC),
        _ if fits(MSEC) => format!("{}ms", ns / MSEC),
        _ if fits(USEC) => format!("{}us", ns / USEC),
        _ => format!("{ns}ns"),
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_'))).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// The digits before and after the decimal point.
fn decimal(number: &str) -> Option<(&str, &str)> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    (digits(whole) && digits(part) && !(whole.is_empty() && part.is_empty())).then_some((whole, part))
}

/// `0.digits * scale`, if that is a whole number.
fn fraction(digits: &str, scale: Nanos) -> Option<Nanos> {
    let digits = digits.trim_end_matches('0');
    if digits.len() > 13 {
        return None;
    }
    let denominator = 10u128.pow(digits.len() as u32);
    let product = u128::from(digits.parse::<u64>().unwrap_or(0)) * u128::from(scale);
    (product % denominator == 0).then_some((product / denominator) as Nanos)
}

fn unit_hint(unit: &str) -> String {
    let usual = match unit.to_lowercase().as_str() {
        "sec" | "secs" | "second" | "seconds" => "s",
        "msec" | "msecs" | "millisecond" | "milliseconds" => "ms",
        "usec" | "usecs" | "microsecond" | "microseconds" => "us",
        "nsec" | "nanosecond" | "nanoseconds" => "ns",
        "m" | "minute" | "minutes" | "mins" => "min",
        "hour" | "hours" | "hr" => "h",
        _ => return "units: ns us ms s min h".into(),
    };
    format!("did you mean \"{usual}\"?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations() {
        let good = [
            ("10s", 10 * SEC),
            ("0s", 0),
            ("1 ms", MSEC),
            ("0.1ms", 100 * USEC),
            (".5us", 500),
            ("2.000000000s", 2 * SEC),
            ("1.5min", 90 * SEC),
            ("1h", 3600 * SEC),
            ("3\u{b5}s", 3 * USEC),
        ];
        for (text, want) in good {
            assert_eq!(duration(text), Ok(want), "{text}");
        }
        let bad = [
            ("10", "the unit is missing", "write \"10ms\" or \"10s\""),
            ("10sec", "unknown unit \"sec\"", "did you mean \"s\"?"),
            ("10 parsecs", "unknown unit \"parsecs\"", "units: ns us ms s min h"),
            ("", "the number is missing", ""),
            ("-1s", "a duration cannot be negative", ""),
            ("1_000us", "\"1_000\" is not a decimal number", ""),
            ("1.2.3s", "\"1.2.3\" is not a decimal number", ""),
            ("0.5ns", "this is not a whole number of nanoseconds below 2^64", ""),
            ("99999999999999h", "this is not a whole number of nanoseconds below 2^64", ""),
        ];
        for (text, message, hint) in bad {
            assert_eq!(duration(text), Err((message.into(), hint.into())), "{text}");
        }
    }

    #[test]
    fn percentages() {
        assert_eq!(percent("2%"), Ok(2.0));
        assert_eq!(percent(" 0.5 %"), Ok(0.5));
        assert_eq!(percent("2").unwrap_err().1, "write \"2%\"");
        for bad in ["%", "-1%", "nan%", "1e400%", "inf%"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn formatted_durations_parse_back(ns: u64) {
            prop_assert_eq!(duration(&show_duration(ns)), Ok(ns));
        }

        #[test]
        fn never_panics(text: String) {
            let _ = (duration(&text), percent(&text));
        }
    }
}
