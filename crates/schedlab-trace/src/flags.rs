//! ftrace's column of context flags, in letters and in the bits of `common_flags` and `common_preempt_count`.

use std::fmt;

/// irqs-off, need-resched, hard/softirq, preempt-depth, migrate-disable, one letter each; `.` = not set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Flags(pub [u8; 5]);

// include/linux/trace_events.h. Bit 1 meant "irqs unknown" until it became NEED_RESCHED_LAZY in 6.13.
const IRQS_OFF: u8 = 0x01;
const NEED_RESCHED_LAZY: u8 = 0x02;
const NEED_RESCHED: u8 = 0x04;
const HARDIRQ: u8 = 0x08;
const SOFTIRQ: u8 = 0x10;
const PREEMPT_RESCHED: u8 = 0x20;
const NMI: u8 = 0x40;
const BH_OFF: u8 = 0x80;

const IRQS_LETTERS: [(u8, u8); 3] = [(b'D', IRQS_OFF | BH_OFF), (b'd', IRQS_OFF), (b'b', BH_OFF)];
const RESCHED_LETTERS: [(u8, u8); 7] = [
    (b'B', NEED_RESCHED | NEED_RESCHED_LAZY | PREEMPT_RESCHED),
    (b'N', NEED_RESCHED | PREEMPT_RESCHED),
    (b'L', NEED_RESCHED_LAZY | PREEMPT_RESCHED),
    (b'b', NEED_RESCHED | NEED_RESCHED_LAZY),
    (b'n', NEED_RESCHED),
    (b'l', NEED_RESCHED_LAZY),
    (b'p', PREEMPT_RESCHED),
];
const CONTEXT_LETTERS: [(u8, u8); 5] =
    [(b'Z', NMI | HARDIRQ), (b'z', NMI), (b'H', HARDIRQ | SOFTIRQ), (b'h', HARDIRQ), (b's', SOFTIRQ)];

impl Default for Flags {
    fn default() -> Self {
        Flags::NONE
    }
}

impl Flags {
    /// No flag set.
    pub const NONE: Flags = Flags([b'.'; 5]);

    /// Reads the column; missing letters count as not set. `None` if it is longer or not printable.
    #[must_use]
    pub fn parse(text: &str) -> Option<Flags> {
        if text.len() > 5 || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return None;
        }
        let mut flags = Flags::NONE;
        flags.0[..text.len()].copy_from_slice(text.as_bytes());
        Some(flags)
    }

    /// Whether TIF_NEED_RESCHED was set (not the lazy one).
    #[must_use]
    pub fn need_resched(self) -> bool {
        matches!(self.0[1], b'N' | b'n' | b'B' | b'b')
    }

    /// Whether TIF_NEED_RESCHED_LAZY was set.
    #[must_use]
    pub fn need_resched_lazy(self) -> bool {
        matches!(self.0[1], b'L' | b'l' | b'B' | b'b')
    }

    /// Whether an interrupt, a soft interrupt or an NMI was being handled.
    #[must_use]
    pub fn in_interrupt(self) -> bool {
        matches!(self.0[2], b'h' | b'H' | b's' | b'z' | b'Z')
    }

    /// The letters for `common_flags` and `common_preempt_count` (low half: depth, high half: migrate-disable).
    #[must_use]
    pub(crate) fn of_bits(flags: u8, preempt_count: u8) -> Flags {
        let letter = |table: &[(u8, u8)]| {
            let mask = table.iter().fold(0, |mask, (_, bits)| mask | bits);
            table.iter().find(|(_, bits)| flags & mask == *bits).map_or(b'.', |(letter, _)| *letter)
        };
        let digit = |depth: u8| if depth == 0 { b'.' } else { b"0123456789abcdef"[usize::from(depth & 0xf)] };
        let context =
            CONTEXT_LETTERS.iter().find(|(_, bits)| flags & bits == *bits).map_or(b'.', |(letter, _)| *letter);
        let depths = [digit(preempt_count & 0xf), digit(preempt_count >> 4)];
        Flags([letter(&IRQS_LETTERS), letter(&RESCHED_LETTERS), context, depths[0], depths[1]])
    }

    /// The bits that [`Flags::of_bits`] shows as these letters.
    #[must_use]
    pub(crate) fn to_bits(self) -> (u8, u8) {
        let bits =
            |letter: u8, table: &[(u8, u8)]| table.iter().find(|(l, _)| *l == letter).map_or(0, |(_, bits)| *bits);
        let depth = |letter: u8| char::from(letter).to_digit(16).unwrap_or(0) as u8;
        let [irqs, resched, context, preempt, migrate] = self.0;
        let flags = bits(irqs, &IRQS_LETTERS) | bits(resched, &RESCHED_LETTERS) | bits(context, &CONTEXT_LETTERS);
        (flags, depth(preempt) | depth(migrate) << 4)
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|letter| fmt::Write::write_char(f, char::from(*letter)))
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_bits_agree() {
        for text in [".....", "d..2.", "dNh2.", "D.s41", "bLz..", "dBH3.", ".n...", ".p..f"] {
            let flags = Flags::parse(text).unwrap();
            let (bits, preempt_count) = flags.to_bits();
            assert_eq!(Flags::of_bits(bits, preempt_count), flags, "{text}");
        }
    }

    #[test]
    fn the_context_of_an_interrupt_is_known() {
        for (text, want) in
            [("d.h2.", true), ("..s..", true), ("dNH", true), ("..z", true), ("d..2.", false), ("", false)]
        {
            assert_eq!(Flags::parse(text).unwrap().in_interrupt(), want, "{text}");
        }
    }

    #[test]
    fn need_resched_differs_from_the_lazy_flag() {
        let cases = [
            ("dN...", true, false),
            ("dn", true, false),
            ("dB.3.", true, true),
            ("dL...", false, true),
            ("", false, false),
        ];
        for (text, hard, lazy) in cases {
            let flags = Flags::parse(text).unwrap();
            assert_eq!((flags.need_resched(), flags.need_resched_lazy()), (hard, lazy), "{text}");
        }
        assert_eq!(Flags::parse("toolong"), None);
    }
}
