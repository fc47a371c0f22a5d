//! New groups (`sched_create_group`, `alloc_fair_sched_group`, `init_tg_cfs_entry`).

use super::arena::Arena;
use super::cfs_rq::CfsRq;
use super::entity::Entity;
use super::task_group::TaskGroup;
use super::tree::Slices;
use crate::group_id::GroupId;
use crate::KernelConfig;
use schedlab_model::CpuId;

impl Arena {
    /// `sched_create_group`: an empty group of weight 1024 below `parent`.
    pub fn sched_create_group(&mut self, parent: GroupId, config: &KernelConfig) -> GroupId {
        if !self.grouped {
            self.begin_groups(config);
        }
        let group = GroupId(self.groups.len() as u32);
        self.groups.push(TaskGroup { parent, ..TaskGroup::root() });
        let slices = Slices::read_by(&config.rules, true);
        for cpu in (0..self.nr_cpus()).map(|cpu| CpuId(cpu as u32)) {
            let mut entity = Entity::blank(cpu, config);
            entity.my_q = Some(self.rqs.len() as u32);
            if config.rules.pelt.runnable_load {
                entity.runnable = entity.load.weight as u32;
            }
            self.position_in(parent, cpu).assign(&mut entity);
            let mut queue = CfsRq::new(group, cpu, config.rules.averaging(), slices);
            // sync_throttle: a group created below a throttled one.
            queue.throttle_count = self.rqs[self.group_queue(parent, cpu)].throttle_count;
            self.rqs.push(queue);
            self.entities.push(entity);
        }
        group
    }

    fn begin_groups(&mut self, config: &KernelConfig) {
        self.grouped = true;
        // No entity of a group exists yet, so no link moves.
        self.entities.begin_groups(&Entity::blank(CpuId(0), config));
        let slices = Slices::read_by(&config.rules, true);
        if slices != Slices::None {
            for q in self.rqs.iter_mut() {
                q.tree.keep_slices(&mut self.entities.nodes, slices);
            }
        }
    }
}
