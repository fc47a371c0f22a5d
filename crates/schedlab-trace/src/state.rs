//! `prev_state` between the kernel's letters and the model.

use crate::TaskState;

/// The state that letters such as `R+`, `S`, `D|W` or a raw bit mask such as `1` stand for.
pub fn parse(letters: &str) -> Option<TaskState> {
    Some(match *letters.as_bytes().first()? {
        b'R' => TaskState::Running,
        b'S' => TaskState::Sleeping,
        b'D' | b'K' | b'W' => TaskState::Blocked,
        b'T' | b't' => TaskState::Stopped,
        b'X' | b'Z' | b'x' => TaskState::Dead,
        b'P' | b'I' | b'N' => TaskState::Parked,
        b'0'..=b'9' => of_bits(number(letters)?),
        _ => return None,
    })
}

/// The state of a `prev_state` bit mask as kernels from 4.14 on report it.
pub fn of_bits(bits: i64) -> TaskState {
    match bits & 0xff {
        0 => TaskState::Running,
        bits if bits & 0x30 != 0 => TaskState::Dead,
        bits if bits & 0x0c != 0 => TaskState::Stopped,
        bits if bits & 0xc0 != 0 => TaskState::Parked,
        bits if bits & 0x02 != 0 => TaskState::Blocked,
        _ => TaskState::Sleeping,
    }
}

/// The bit mask of a state: of its letters where there are any, else of the model's word for it.
pub fn bits(letters: &str, state: TaskState) -> i64 {
    if letters.starts_with(|first: char| first.is_ascii_digit()) {
        return number(letters).unwrap_or(0);
    }
    if letters.is_empty() {
        return bit_of(state.to_string().as_bytes()[0]);
    }
    letters.bytes().fold(0, |bits, letter| bits | bit_of(letter))
}

/// include/linux/sched.h from 4.14 on: TASK_* and EXIT_* as `sched_switch` reports them; `+` is TASK_REPORT_MAX.
fn bit_of(letter: u8) -> i64 {
    match letter {
        b'S' => 0x01,
        b'D' => 0x02,
        b'T' => 0x04,
        b't' => 0x08,
        b'X' => 0x10,
        b'Z' => 0x20,
        b'P' => 0x40,
        b'I' => 0x80,
        b'+' => 0x100,
        _ => 0,
    }
}

/// The letters of a bit mask, as kernels from 4.14 on print them.
pub fn letters(bits: i64) -> String {
    let named = b"SDTtXZPI".iter().filter(|letter| bits & bit_of(**letter) != 0);
    let mut text: Vec<String> = named.map(|letter| char::from(*letter).to_string()).collect();
    if text.is_empty() {
        text.push("R".to_owned());
    }
    text.join("|") + if bits & 0x100 != 0 { "+" } else { "" }
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_bits() {
        use TaskState::*;
        let cases = [
            ("R", Running),
            ("R+", Running),
            ("S", Sleeping),
            ("S|W", Sleeping),
            ("D|K", Blocked),
            ("Z", Dead),
            ("t", Stopped),
            ("I", Parked),
            ("P", Parked),
            ("0", Running),
            ("256", Running),
            ("1", Sleeping),
            ("0x2", Blocked),
            ("16", Dead),
            ("64", Parked),
            ("128", Parked),
            ("8", Stopped),
        ];
        for (letters, want) in cases {
            assert_eq!(parse(letters), Some(want), "{letters}");
        }
        for text in ["R", "R+", "S", "D", "T", "t", "X", "Z", "P", "I"] {
            assert_eq!(super::letters(bits(text, Running)), text);
        }
        assert_eq!(bits("", Parked), 0x80);
        for bad in ["", "?", "+", "0x", "9999999999999999999999"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
