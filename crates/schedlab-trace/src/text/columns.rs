//! The columns of context flags, whose number depends on the kernel: the legend above the events names them.

use crate::Flags;

/// The columns of a trace, from left to right.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Columns(Vec<Column>);

/// What a column shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    IrqsOff,
    NeedResched,
    /// Of kernels with PREEMPT_RT before 6.13, which have the lazy flag in a column of its own.
    NeedReschedLazy,
    Context,
    PreemptDepth,
    MigrateDisable,
    /// The depth of lazy preempt-disabled sections: not one of [`Flags`].
    Other,
}

/// Those of kernels with PREEMPT_RT, where there is no legend.
const SEVEN: [Column; 7] = [
    Column::IrqsOff,
    Column::NeedResched,
    Column::NeedReschedLazy,
    Column::Context,
    Column::PreemptDepth,
    Column::Other,
    Column::MigrateDisable,
];

impl Columns {
    /// Takes a line of the legend, such as `#   / _----=> need-resched`; others are ignored.
    pub fn learn(&mut self, comment: &str) {
        let Some((_, name)) = comment.split_once("=> ") else { return };
        let drawn = comment.split_once("=> ").is_some_and(|(drawing, _)| drawing.contains("_-"));
        let name = name.trim().replace('_', "-");
        let column = match name.as_str() {
            _ if !drawn => return,
            "CPU#" => return,
            name if name.starts_with("irqs-off") => Column::IrqsOff,
            "need-resched" => Column::NeedResched,
            "need-resched-lazy" => Column::NeedReschedLazy,
            "hardirq/softirq" => Column::Context,
            "preempt-depth" => Column::PreemptDepth,
            "migrate-disable" => Column::MigrateDisable,
            _ => Column::Other,
        };
        self.0.push(column);
    }

    /// Reads the column of flags; missing letters count as not set. `None` if there are more letters than columns.
    pub fn parse(&self, text: &str) -> Option<Flags> {
        let columns = match (text.len(), self.0.len()) {
            (length, named) if named > 5 && length <= named => &self.0[..],
            (length, _) if length == SEVEN.len() => &SEVEN[..],
            _ => return Flags::parse(text),
        };
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut flags = Flags::NONE;
        let mut lazy = false;
        for (letter, column) in text.bytes().zip(columns) {
            match column {
                Column::IrqsOff => flags.0[0] = letter,
                Column::NeedResched => flags.0[1] = letter,
                Column::NeedReschedLazy => lazy = matches!(letter, b'L' | b'l' | b'N' | b'n'),
                Column::Context => flags.0[2] = letter,
                Column::PreemptDepth => flags.0[3] = letter,
                Column::MigrateDisable => flags.0[4] = letter,
                Column::Other => {}
            }
        }
        if lazy {
            flags.0[1] = match flags.0[1] {
                b'N' => b'B',
                b'n' => b'b',
                b'p' => b'L',
                _ => b'l',
            };
        }
        Some(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_by_legend_or_by_their_number() {
        let rt = ["irqs-off", "need-resched", "need_resched_lazy", "hardirq/softirq", "preempt-depth"];
        let rt = [&rt[..], &["preempt-lazy-depth", "migrate-disable", "delay"]].concat();
        let five = ["irqs-off/BH-disabled", "need-resched", "hardirq/softirq", "preempt-depth", "migrate-disable"];
        let six = ["irqs-off", "need-resched", "hardirq/softirq", "preempt-depth", "preempt-lazy-depth"];
        let six = [&six[..], &["migrate-disable"]].concat();
        let cases: [(&[&str], &str, Option<&str>); 10] = [
            (&[], "d..2.", Some("d..2.")),
            (&[], "dN.", Some("dN...")),
            (&[], "d...2..", Some("d..2.")),
            (&[], "dNLh2.1", Some("dBh21")),
            (&[], "d.Lh2..", Some("dlh2.")),
            (&[], "d..2.1", None),
            (&rt, "d.L.3.1", Some("dl.31")),
            (&five, "dNh2.", Some("dNh2.")),
            (&six, "dNh2.1", Some("dNh21")),
            (&five, "dNh2.xxxxx", None),
        ];
        for (legend, text, want) in cases {
            let mut columns = Columns::default();
            legend.iter().for_each(|name| columns.learn(&format!("#     / _---=> {name}")));
            assert_eq!(columns.parse(text).map(|flags| flags.to_string()).as_deref(), want, "{legend:?} {text}");
        }
    }
}
