//! One recipient pool of a pass: nobody is left, and what happens then.

use super::decision::Outcome;
use super::hop::{Hop, Hopped, Step, soonest};
use super::objects::{FallbackKind, OnLimit};
use super::pass::{Ends, Waits, World};
use super::pipeline::{Fallback, Pipeline, Target};
use super::reason::Note;
use crate::words::ids::RecipientPoolId;
use crate::words::time::Micros;

impl<W: World> Hop<'_, '_, W> {
    /// The steps of the pipeline, else what the recipient pool says.
    pub(super) fn fall_back(&mut self, pipeline: &Pipeline) -> Step<W, Hopped> {
        let config = &self.prepared.recipient_pool.config;
        let flow = config.flow_control.as_ref();
        if self.closed.is_some() && flow.is_some_and(|flow| flow.on_limit == OnLimit::Queue) {
            return Ok(self.wait(None));
        }
        if let Some(hopped) = self.steps(pipeline)? {
            return Ok(hopped);
        }
        Ok(match config.fallback {
            FallbackKind::Queue => self.wait(None),
            FallbackKind::Drop => Hopped::Ended(Outcome::Dropped, Ends::Over),
            FallbackKind::Overflow => match config.overflow {
                Some(to) => Hopped::On { to, shard: None },
                None => self.wait(None),
            },
            FallbackKind::Catchall => match config.catchall {
                Some(to) => self.wait_for_catchall(to),
                None => self.wait(None),
            },
        })
    }

    fn steps(&mut self, pipeline: &Pipeline) -> Step<W, Option<Hopped>> {
        for step in &pipeline.fallback {
            match step {
                Fallback::Pipeline(next) => {
                    self.through(next)?;
                    if let Some((outcome, ends)) = self.ended.take() {
                        return Ok(Some(Hopped::Ended(outcome, ends)));
                    }
                    if let Some(hopped) = self.steps(next)? {
                        return Ok(Some(hopped));
                    }
                }
                Fallback::Overflow(target) => {
                    if let Some(to) = self.target(target)? {
                        return Ok(Some(Hopped::On { to, shard: None }));
                    }
                }
                Fallback::Queue(ttl_us) => return Ok(Some(self.wait(*ttl_us))),
                Fallback::Drop => return Ok(Some(Hopped::Ended(Outcome::Dropped, Ends::Over))),
            }
        }
        Ok(None)
    }

    /// A recipient pool that a pipeline names, if it can be entered.
    fn target(&mut self, target: &Target) -> Step<W, Option<RecipientPoolId>> {
        let (id, name) = match target {
            Target::Id(id) => (Some(*id), id.to_string()),
            Target::Name(name) => {
                let id = self.pass.world.recipient_pool_named(name)?;
                self.pass.read.names.insert(name.clone(), id);
                (id, name.clone())
            }
        };
        let id = match id {
            Some(id) => self
                .pass
                .prepared(id)?
                .filter(|found| found.recipient_pool.can_route())
                .map(|_| id),
            None => None,
        };
        let id = id.filter(|id| !self.pass.visited.contains(id));
        if id.is_none() {
            self.pass.notes.push(Note::Skipped { recipient_pool: name });
        }
        Ok(id)
    }

    fn wait(&mut self, ttl_us: Option<u64>) -> Hopped {
        let ttl_us = ttl_us.unwrap_or(self.prepared.recipient_pool.config.queue_ttl_us);
        self.wait_until(ttl_us, None, Outcome::Queued)
    }

    fn wait_until(
        &mut self,
        ttl_us: u64,
        catchall: Option<(Micros, RecipientPoolId)>,
        outcome: Outcome,
    ) -> Hopped {
        let since = self.pass.since();
        let expires_at = since.plus(ttl_us);
        if self.pass.now >= expires_at {
            self.pass.notes.push(Note::QueueExpired {
                waited_us: self.pass.now.since(since),
                ttl_us,
            });
            return Hopped::Ended(Outcome::Dropped, Ends::Over);
        }
        Hopped::Ended(
            outcome,
            Ends::Waits(Waits {
                recipient_pool: self.id(),
                expires_at,
                catchall,
                retry_at: soonest(self.retry_at, None),
            }),
        )
    }

    /// It waits for its catchall, and goes there when that is due.
    fn wait_for_catchall(&mut self, to: RecipientPoolId) -> Hopped {
        let config = &self.prepared.recipient_pool.config;
        let due = self.hop_since().plus(config.catchall_delay_us);
        if self.pass.now >= due {
            return Hopped::On { to, shard: None };
        }
        self.wait_until(config.queue_ttl_us, Some((due, to)), Outcome::DeferredCatchall)
    }
}
