//! From pid to number, without a map: pages of pids, each there only while it holds any.

use schedlab_model::Pid;

const PAGE_BITS: usize = 10;
const PAGE: usize = 1 << PAGE_BITS;

/// Numbers above 0 by pid; 0 = none.
#[derive(Clone, Default, Debug)]
pub struct Pids {
    pages: Vec<Option<Box<Page>>>,
}

#[derive(Clone, Debug)]
struct Page {
    numbers: [u32; PAGE],
    held: usize,
}

impl Pids {
    /// The number of a pid; 0 if it has none. Negative pids have none.
    #[inline]
    pub fn get(&self, pid: Pid) -> u32 {
        // A negative pid becomes a page that is never there.
        match self.pages.get(pid as usize >> PAGE_BITS) {
            Some(Some(page)) => page.numbers[pid as usize % PAGE],
            _ => 0,
        }
    }

    /// Gives a pid above 0 a number.
    pub fn set(&mut self, pid: Pid, number: u32) {
        let Ok(index) = usize::try_from(pid) else { return };
        if self.pages.len() <= index >> PAGE_BITS {
            self.pages.resize((index >> PAGE_BITS) + 1, None);
        }
        let empty = || Box::new(Page { numbers: [0; PAGE], held: 0 });
        let page = self.pages[index >> PAGE_BITS].get_or_insert_with(empty);
        let place = &mut page.numbers[index % PAGE];
        page.held += usize::from(*place == 0);
        *place = number;
    }

    /// Takes it away again.
    pub fn forget(&mut self, pid: Pid) {
        let Some(slot) = self.pages.get_mut(pid as usize >> PAGE_BITS) else { return };
        let Some(page) = slot else { return };
        let place = &mut page.numbers[pid as usize % PAGE];
        page.held -= usize::from(std::mem::take(place) != 0);
        if page.held == 0 {
            *slot = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((1i32..5000, 0u32..4), 1..200)) {
            let (mut pids, mut model) = (Pids::default(), BTreeMap::new());
            for (pid, number) in steps {
                if number == 0 {
                    pids.forget(pid);
                    model.remove(&pid);
                } else {
                    pids.set(pid, number);
                    model.insert(pid, number);
                }
                for pid in [pid, pid + 1, pid + 1024, -pid, 0, i32::MAX] {
                    prop_assert_eq!(pids.get(pid), model.get(&pid).copied().unwrap_or(0), "{}", pid);
                }
            }
            model.keys().for_each(|pid| pids.forget(*pid));
            prop_assert!(pids.pages.iter().all(Option::is_none));
        }
    }
}
