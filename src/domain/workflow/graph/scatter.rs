//! Scatters: their branches begin as many at a time as may be open, are counted when they end, and are done again where
//! another run did not succeed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::items::Items;
use super::key::{Key, ValueName};
use super::kinds::StepKind;
use super::moves::Moving;
use super::reach::error_of;
use super::state::{Branches, WaitsFor};
use super::tick::{StepError, View};
use crate::domain::workflow::run::{StepPhase, StepState};
use crate::words::limits;

impl<V: View> Moving<'_, V> {
    pub(super) fn scatter(&mut self, key: &Key, state: StepState) -> Result<(), V::Error> {
        let graph = self.graph;
        let Some(scatter) = graph.node(key.node).as_scatter() else {
            return Ok(());
        };
        let scope = self.scope([&scatter.items], key)?;
        let items = match scatter.items.evaluate(&scope) {
            Ok(items) => items,
            Err(fault) => return self.fail(key, state, &error_of(&fault)),
        };
        let Value::Array(list) = items else {
            let error = StepError::new("scatter.not_a_list", "`items` is not a list").for_good();
            return self.fail(key, state, &error);
        };
        let total = list.len();
        let (own_limit, max_bytes) = if let StepKind::Scatter(doc) = &graph.node(key.node).doc.kind {
            (doc.max_items.map(|most| most as usize), doc.max_bytes)
        } else {
            (None, None)
        };
        // Counted only where there is a limit: as JSON, brackets and commas included.
        let count = || list.iter().map(|item| item.to_string().len() + 1).sum::<usize>() + 1;
        let bytes = max_bytes.map(|most| (most, count().max(2)));
        if let Some((most, bytes)) = bytes.filter(|(most, bytes)| *bytes > *most as usize) {
            let text = format!("`items` has {bytes} bytes as JSON; this scatter takes at most {most}");
            return self.fail(key, state, &StepError::new("scatter.too_large", text).for_good());
        }
        let most = own_limit
            .unwrap_or(limits::BRANCHES_MAX)
            .min(limits::BRANCHES_MAX);
        if total > most {
            let text = format!("`items` has {total} items; a scatter takes at most {most}");
            return self.fail(key, state, &StepError::new("scatter.too_many", text).for_good());
        }
        if total == 0 {
            return self.succeed(key, state, Some(Arc::new(json!(0))));
        }
        let items = Items::of(&list);
        self.keep(ValueName::Items(state.step.clone()), Arc::new(items.as_value()));
        for (page, list) in items.pages(list) {
            let name = ValueName::ItemPage(state.step.clone(), page);
            self.keep(name, Arc::new(Value::Array(list)));
        }
        let branches = Branches {
            total: items.total,
            ..Branches::default()
        };
        self.wait(key, state, WaitsFor::Branches(branches))?;
        self.begin_branches(key)
    }

    /// What a scatter is over: how many items, and where each of them is.
    pub(super) fn items_of(&mut self, scatter: &Key) -> Result<Items, V::Error> {
        let found = self.value(&ValueName::Items(scatter.name(self.graph)))?;
        Ok(found.as_deref().map(Items::read).unwrap_or_default())
    }

    /// One item. Only the page on which it stands is read.
    pub(super) fn item_of(&mut self, scatter: &Key, branch: u32) -> Result<Value, V::Error> {
        let (page, place) = self.items_of(scatter)?.place(branch);
        let page = self.page(ValueName::ItemPage(scatter.name(self.graph), page))?;
        let item = page.as_deref().and_then(|page| page.get(place));
        Ok(item.cloned().unwrap_or_default())
    }

    /// A scatter that was taken over waits for branches again: it is counted from the start.
    pub(super) fn reopen(&mut self, key: &Key, mut state: StepState) -> Result<(), V::Error> {
        let branches = Branches {
            total: self.items_of(key)?.total,
            ..Branches::default()
        };
        state.phase = StepPhase::Waiting {
            since: self.now,
            on: WaitsFor::Branches(branches),
        };
        self.put(key, state)
    }

    /// Begins as many branches as may be open.
    pub(super) fn begin_branches(&mut self, key: &Key) -> Result<(), V::Error> {
        let graph = self.graph;
        let node = graph.node(key.node);
        let (Some(scatter), StepKind::Scatter(doc)) = (node.as_scatter(), &node.doc.kind) else {
            return Ok(());
        };
        let open_max = doc
            .max_parallel
            .unwrap_or(limits::OPEN_BRANCHES_MAX)
            .min(limits::OPEN_BRANCHES_MAX);
        let Some(mut state) = self.step_of(key)? else {
            return Ok(());
        };
        if state.graph.as_ref().is_some_and(|graph| graph.over.is_some()) {
            return Ok(());
        }
        let StepPhase::Waiting {
            on: WaitsFor::Branches(branches),
            ..
        } = &mut state.phase
        else {
            return Ok(());
        };
        let from = branches.begun;
        let room = open_max.saturating_sub(branches.open());
        branches.begun = branches.total.min(from + room);
        let to = branches.begun;
        if from == to {
            return Ok(());
        }
        self.put(key, state)?;
        for branch in from..to {
            let mut is_known = false;
            for root in &scatter.roots {
                is_known |= self.step_of(&key.inside(*root, branch))?.is_some();
            }
            if is_known {
                self.go_on_with(key, &scatter.body, branch)?;
            }
            for root in &scatter.roots {
                self.reach_if_new(&key.inside(*root, branch))?;
            }
        }
        Ok(())
    }

    /// What a branch has done in another run counts now that it is its turn. Whatever was taken over of a branch, the steps
    /// before it were too.
    fn go_on_with(&mut self, scatter: &Key, body: &[usize], branch: u32) -> Result<(), V::Error> {
        for id in body {
            let inner = scatter.inside(*id, branch);
            let Some(state) = self.step_of(&inner)? else {
                continue;
            };
            if state.phase.is_terminal() {
                self.ended.push_back(inner);
            } else {
                self.begin_branches(&inner)?;
            }
        }
        Ok(())
    }

    /// Counts the branch in which a step has ended, when it was the last of it.
    pub(super) fn count_branch(&mut self, key: &Key) -> Result<(), V::Error> {
        let graph = self.graph;
        let Some((scatter_key, branch)) = key.around(graph) else {
            return Ok(());
        };
        let node = graph.node(scatter_key.node);
        let (Some(scatter), StepKind::Scatter(doc)) = (node.as_scatter(), &node.doc.kind) else {
            return Ok(());
        };
        let whole = scatter_key.inside(scatter_key.node, branch);
        if self.counted.contains(&whole) {
            return Ok(());
        }
        let mut failed = false;
        for id in &scatter.body {
            let Some(state) = self.step_of(&scatter_key.inside(*id, branch))? else {
                return Ok(());
            };
            if !state.phase.is_terminal() {
                return Ok(());
            }
            failed |= graph.node(*id).fails_run_by(&state.phase).is_some();
        }
        self.counted.insert(whole);
        let Some(mut state) = self.step_of(&scatter_key)? else {
            return Ok(());
        };
        let StepPhase::Waiting {
            on: WaitsFor::Branches(branches),
            ..
        } = &mut state.phase
        else {
            return Ok(());
        };
        if failed {
            branches.failed += 1;
        } else {
            branches.succeeded += 1;
        }
        let branches = *branches;
        let over = state.graph.as_ref().and_then(|graph| graph.over.clone());
        let last = if over.is_some() {
            branches.begun
        } else {
            branches.total
        };
        if branches.succeeded + branches.failed < last {
            self.put(&scatter_key, state)?;
            return self.begin_branches(&scatter_key);
        }
        if let Some(why) = over {
            let error = StepError::new("timeout.total", why).for_good();
            return self.fail(&scatter_key, state, &error);
        }
        if doc
            .tolerated_failures
            .is_exceeded(branches.failed, branches.total)
        {
            let text = format!("{} of {} branches failed", branches.failed, branches.total);
            return self.fail(&scatter_key, state, &StepError::new("scatter.failed", text));
        }
        self.succeed(&scatter_key, state, Some(Arc::new(json!(branches.total))))
    }
}
