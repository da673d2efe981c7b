//! From one configuration to the next: who is there stays there.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    At, Queues,
    forest::{self, Held},
    objects::{LocalQueue, Objects},
    quotas::FlavorResource,
    tree::{Queue, Tree},
};

impl Queues {
    /// Goes by other objects from now on. Who holds quota keeps it, also where there is too little now; who waits keeps
    /// their place. A tree about which nothing is different does not notice.
    pub fn set_objects(&mut self, objects: Objects) {
        self.grow_anew(objects, Held::new());
    }

    /// Makes room for what a queue gives that no object says: it was given once, and counts for as long as it is held.
    pub(super) fn hold_place(&mut self, cluster_queue: &str, places: BTreeSet<(String, String)>) {
        let held = Held::from([(cluster_queue.to_owned(), places)]);
        self.grow_anew(self.objects.clone(), held);
    }

    fn grow_anew(&mut self, objects: Objects, to_be_held: Held) {
        let old = std::mem::replace(self, Self::new(Objects::default()));
        let mut held: Held = old.trees.iter().flat_map(Tree::held).collect();
        for (queue, places) in to_be_held {
            held.entry(queue).or_default().extend(places);
        }
        *self = Self::grow(objects, held);
        self.now = old.now;
        self.protected_for = old.protected_for;
        self.back_offs = old.back_offs;
        self.remember_names(&old.objects, old.known_before);
        for (number, tree) in old.trees.into_iter().enumerate() {
            if let Some(at) = self.same_tree(&old.objects, &tree) {
                self.keep(at, tree);
                if old.restless.contains(&number) {
                    self.restless.insert(at);
                }
                continue;
            }
            for queue in tree.queues {
                self.move_in(&tree.places, tree.cycles, queue);
            }
        }
    }

    /// Keeps what names led to that lead to nothing now.
    fn remember_names(&mut self, old: &Objects, before: BTreeMap<String, (String, String)>) {
        let names = old.local_queues.iter().map(|(known_as, local)| {
            let (namespace, own_name) = local.in_cluster(known_as);
            (known_as.clone(), (namespace.to_owned(), own_name.to_owned()))
        });
        let now = &self.objects.local_queues;
        self.known_before = before.into_iter().chain(names).collect();
        self.known_before.retain(|name, _| !now.contains_key(name));
    }

    /// Returns the LocalQueue of this name, with what it is known by now: a name leads on to the same LocalQueue of a
    /// cluster when that is known by another, because a second one has its name in another namespace.
    pub fn local_queue(&self, name: &str) -> Option<(&str, &LocalQueue)> {
        let mut all = self.objects.local_queues.iter();
        let found = self.objects.local_queues.get_key_value(name).or_else(|| {
            let (namespace, own_name) = self.known_before.get(name)?;
            all.find(|(known_as, local)| local.in_cluster(known_as) == (namespace, own_name))
        });
        found.map(|(known_as, local)| (known_as.as_str(), local))
    }

    /// Returns the number of the tree that is the same as one that was, if there is one.
    fn same_tree(&self, before: &Objects, old: &Tree) -> Option<usize> {
        let at = self.queues.get(&old.queues.first()?.name)?.tree;
        forest::is_same((before, old), (&self.objects, &self.trees[at])).then_some(at)
    }

    fn keep(&mut self, tree: usize, old: Tree) {
        for (queue, known) in old.queues.iter().enumerate() {
            let ids = known.holders.keys().copied().chain(known.pending.ids());
            self.workloads.extend(ids.map(|id| (id, At { tree, queue })));
        }
        self.trees[tree] = old;
    }

    /// Moves who was in a queue into the one that has its name now.
    fn move_in(&mut self, places: &[(String, String)], cycles: u64, old: Queue) {
        let Some(at) = self.queues.get(&old.name).copied() else {
            return;
        };
        let Self { objects, trees, .. } = self;
        let tree = &mut trees[at.tree];
        let queue = &mut tree.queues[at.queue];
        let mut shapes: Vec<_> = old.shape_numbers.into_iter().collect();
        shapes.sort_unstable_by_key(|(_, number)| *number);
        for (pod_sets, _) in shapes {
            queue.shape_number(&pod_sets, &objects.flavors);
        }
        let held = old.holders.values().flat_map(|holder| {
            let usage = holder.usage.iter();
            usage.map(|(of, amount)| (holder.entry.user, places[of.0].1.clone(), *amount))
        });
        queue.users.adopt(old.users, objects, held);
        queue.pending.adopt(old.pending);
        if !queue.terms.has_flavors_of(&old.terms) {
            queue.pending.forget_progress();
        }
        tree.cycles = tree.cycles.max(cycles);
        queue.generation = old.generation + 1;
        let place = |of: FlavorResource| {
            let (flavor, resource) = &places[of.0];
            tree.places.iter().position(|(f, r)| f == flavor && r == resource)
        };
        for (id, mut holder) in old.holders {
            for (of, _) in &mut holder.usage {
                *of = FlavorResource(place(*of).expect("what is held has a place"));
            }
            tree.quotas.add(queue.node, &holder.usage);
            queue.holders.insert(id, holder);
            self.workloads.insert(id, at);
        }
        self.workloads.extend(queue.pending.ids().map(|id| (id, at)));
        self.restless.insert(at.tree);
    }
}
