//! A world in memory: what a pass read, a snapshot that is replayed, and the worlds of tests.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use super::candidate::Members;
use super::crew::{Alone, Crew, Hands};
use super::objects::{PipelineMode, Trait};
use super::pass::{Flow, World};
use super::ready::{Prepared, ReadyRule};
use super::state::{Holder, StageState};
use super::work::Work;
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId};
use crate::words::time::Micros;

/// Everything that a pass may read, in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The name of the tenant.
    pub tenant: String,
    /// Its default recipient pool.
    pub default_recipient_pool: Option<RecipientPoolId>,
    /// How checks run.
    pub pipeline_mode: PipelineMode,
    /// Its rules.
    pub tenant_rules: Arc<Vec<ReadyRule>>,
    /// Recipient pools; none for one that was looked for and is not there.
    pub recipient_pools: BTreeMap<RecipientPoolId, Option<Arc<Prepared>>>,
    /// Ids by name.
    pub names: BTreeMap<String, Option<RecipientPoolId>>,
    /// Members.
    pub candidates: BTreeMap<RecipientPoolId, Members>,
    /// Traits of the tenant.
    pub traits: Arc<Vec<Trait>>,
    /// What stages remember.
    pub states: BTreeMap<(RecipientPoolId, String), Arc<StageState>>,
    /// Holders of keys.
    pub holders: BTreeMap<(RecipientPoolId, String, String), Holder>,
    /// Work that was seen.
    pub seen: BTreeMap<(RecipientPoolId, String), (DecisionId, Micros)>,
    /// What flowed.
    pub flows: BTreeMap<RecipientPoolId, Flow>,
    /// Who had the work before.
    pub tried: Vec<(RecipientId, DecisionId)>,
    /// Who works on large checks.
    pub hands: Hands,
}

impl Known {
    /// Nothing.
    pub fn new(tenant: &str) -> Known {
        Known {
            tenant: tenant.to_owned(),
            default_recipient_pool: None,
            pipeline_mode: PipelineMode::Linear,
            tenant_rules: Arc::default(),
            recipient_pools: BTreeMap::new(),
            names: BTreeMap::new(),
            candidates: BTreeMap::new(),
            traits: Arc::default(),
            states: BTreeMap::new(),
            holders: BTreeMap::new(),
            seen: BTreeMap::new(),
            flows: BTreeMap::new(),
            tried: Vec::new(),
            hands: Hands(&Alone),
        }
    }
}

impl World for Known {
    type Error = Infallible;

    fn tenant(&self) -> String {
        self.tenant.clone()
    }

    fn default_recipient_pool(&self) -> Result<Option<RecipientPoolId>, Infallible> {
        Ok(self.default_recipient_pool)
    }

    fn pipeline_mode(&self) -> Result<PipelineMode, Infallible> {
        Ok(self.pipeline_mode)
    }

    fn tenant_rules(&self) -> Result<Arc<Vec<ReadyRule>>, Infallible> {
        Ok(Arc::clone(&self.tenant_rules))
    }

    fn recipient_pool(&self, id: RecipientPoolId) -> Result<Option<Arc<Prepared>>, Infallible> {
        Ok(self.recipient_pools.get(&id).cloned().flatten())
    }

    fn recipient_pool_named(&self, name: &str) -> Result<Option<RecipientPoolId>, Infallible> {
        Ok(self.names.get(name).copied().flatten())
    }

    fn candidates(&self, id: RecipientPoolId) -> Result<Members, Infallible> {
        Ok(self.candidates.get(&id).cloned().unwrap_or_default())
    }

    fn traits(&self) -> Result<Arc<Vec<Trait>>, Infallible> {
        Ok(Arc::clone(&self.traits))
    }

    fn stage_state(&self, id: RecipientPoolId, stage: &str) -> Result<Option<Arc<StageState>>, Infallible> {
        Ok(self.states.get(&(id, stage.to_owned())).cloned())
    }

    fn holder(&self, id: RecipientPoolId, stage: &str, key: &str) -> Result<Option<Holder>, Infallible> {
        Ok(self.holders.get(&(id, stage.to_owned(), key.to_owned())).cloned())
    }

    fn seen(&self, id: RecipientPoolId, dedup_key: &str) -> Result<Option<(DecisionId, Micros)>, Infallible> {
        Ok(self.seen.get(&(id, dedup_key.to_owned())).copied())
    }

    fn flow(&self, id: RecipientPoolId, _since: Micros) -> Result<Flow, Infallible> {
        Ok(self.flows.get(&id).copied().unwrap_or_default())
    }

    fn tried_before(&self, _work: &Work) -> Result<Vec<(RecipientId, DecisionId)>, Infallible> {
        Ok(self.tried.clone())
    }

    fn crew(&self) -> &dyn Crew {
        self.hands.0
    }
}
