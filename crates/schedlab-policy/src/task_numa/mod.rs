//! What the fair class does with the state of [`crate::numa`]: hinting faults, the move of a task to the node that it
//! prefers, and what load balancing does with preferred nodes.

mod preferred_node;
mod task_numa_fault;
mod task_numa_migrate;
