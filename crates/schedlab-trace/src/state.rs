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

/// The letters of the bits of `prev_state`, which depend on the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateBits {
    /// Each bit with its letter, in the order in which they are printed.
    letters: Vec<(i64, char)>,
}

/// From 4.14 on, the bits of include/linux/sched.h that `sched_switch` reports.
const SINCE_4_14: &str = "SDTtXZPI";
/// Before (4.2 to 4.13; kernels before that lack the last ones).
const BEFORE_4_14: &str = "SDTtZXxKWPN";

impl Default for StateBits {
    fn default() -> StateBits {
        StateBits::of_letters(SINCE_4_14)
    }
}

impl StateBits {
    fn of_letters(letters: &str) -> StateBits {
        StateBits { letters: letters.chars().enumerate().map(|(bit, letter)| (1 << bit, letter)).collect() }
    }

    /// The bits of a kernel release such as `4.9.337`.
    pub fn of_release(release: &str) -> StateBits {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        StateBits::of_letters(if version.0 > 0 && version < (4, 14) { BEFORE_4_14 } else { SINCE_4_14 })
    }

    /// The table in the print format of `sched_switch`: `{ 0x01, "S" }, { 0x02, "D" }`.
    pub fn of_print_format(text: &str) -> Option<StateBits> {
        let entry = |text: &str| {
            let (bit, letter) = text.split_once('}')?.0.split_once(',')?;
            let letter = letter.trim().strip_prefix('"')?.strip_suffix('"')?;
            let mut letters = letter.chars();
            let bit = number(bit.trim()).filter(|bit| bit.count_ones() == 1)?;
            Some((bit, letters.next().filter(|_| letters.next().is_none())?))
        };
        let letters: Vec<(i64, char)> = text.split('{').skip(1).filter_map(entry).collect();
        (!letters.is_empty()).then_some(StateBits { letters })
    }

    /// The letters of a bit mask, as the kernel prints them. The bit above all that have a letter says that the task
    /// was preempted.
    pub fn letters(&self, bits: i64) -> String {
        let named = self.letters.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, letter)| letter.to_string());
        let mut text: Vec<String> = named.collect();
        if text.is_empty() {
            text.push("R".to_owned());
        }
        let preempted = self.letters.iter().map(|(bit, _)| bit << 1).max().unwrap_or(0);
        text.join("|") + if bits & preempted != 0 { "+" } else { "" }
    }

    /// The letters of a bit mask and the state that they stand for.
    pub fn state(&self, bits: i64) -> (TaskState, String) {
        let letters = self.letters(bits);
        // Dead counts before stopped, and so on, if several bits are set.
        let order = [TaskState::Dead, TaskState::Stopped, TaskState::Parked, TaskState::Blocked, TaskState::Sleeping];
        let states: Vec<TaskState> = letters.split('|').filter_map(parse).collect();
        let state = order.into_iter().find(|state| states.contains(state));
        (state.unwrap_or(TaskState::Running), letters)
    }
}

/// The state of a `prev_state` bit mask as kernels from 4.14 on report it.
fn of_bits(bits: i64) -> TaskState {
    StateBits::default().state(bits).0
}

/// The bit mask of a state: of its letters where there are any, else of the model's word for it.
pub fn bits(letters: &str, state: TaskState) -> i64 {
    if letters.starts_with(|first: char| first.is_ascii_digit()) {
        return number(letters).unwrap_or(0);
    }
    if letters.is_empty() {
        return bit_of(state.to_string().as_bytes()[0]);
    }
    let bits = letters.bytes().fold(0, |bits, letter| bits | bit_of(letter));
    // Letters of other kernels (`W`, `K`) have no bit of their own today.
    match bits == 0 && !letters.starts_with('R') {
        true => bit_of(state.to_string().as_bytes()[0]),
        false => bits,
    }
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
            assert_eq!(StateBits::default().letters(bits(text, Running)), text);
        }
        assert_eq!((bits("", Parked), bits("W", Blocked)), (0x80, 0x02));
        for bad in ["", "?", "+", "0x", "9999999999999999999999"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
    /// The print formats of sched_switch of kernels before and after 4.14, shortened.
    #[test]
    fn the_print_format_has_the_letters_of_the_bits() {
        use TaskState::*;
        let old = concat!(
            r#"REC->prev_state & (2048-1) ? __print_flags(REC->prev_state & (2048-1), "|", { 1, "S"} , { 2, "D" }, "#,
            r#"{ 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }, { 64, "x" }, { 128, "K"}, { 256, "W" }, "#,
            r#"{ 512, "P" }, { 1024, "N" }) : "R", REC->prev_state & 2048 ? "+" : """#
        );
        let new = concat!(
            r#"(REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, "|", { 0x00000001, "S" }, "#,
            r#"{ 0x00000002, "D" }, { 0x00000004, "T" }, { 0x00000008, "t" }, { 0x00000010, "X" }, "#,
            r#"{ 0x00000020, "Z" }, { 0x00000040, "P" }, { 0x00000080, "I" }) : "R""#
        );
        let cases = [
            (0, ("R", Running), ("R", Running)),
            (0x01, ("S", Sleeping), ("S", Sleeping)),
            (0x10, ("Z", Dead), ("X", Dead)),
            (0x40, ("x", Dead), ("P", Parked)),
            (0x80, ("K", Blocked), ("I", Parked)),
            (0x82, ("D|K", Blocked), ("D|I", Parked)),
            (0x100, ("W", Blocked), ("R+", Running)),
            (0x200, ("P", Parked), ("R", Running)),
            (0x800, ("R+", Running), ("R", Running)),
        ];
        let tables = [StateBits::of_print_format(old).unwrap(), StateBits::of_print_format(new).unwrap()];
        assert_eq!(tables, [StateBits::of_release("4.9.337"), StateBits::of_release("4.14.0-rt")]);
        assert_eq!(StateBits::of_release("unknown"), StateBits::default());
        for (bits, before, since) in cases {
            let want = [before, since].map(|(letters, state)| (state, letters.to_owned()));
            assert_eq!([tables[0].state(bits), tables[1].state(bits)], want, "{bits:#x}");
        }
        assert_eq!(StateBits::of_print_format("no table"), None);
    }
}
