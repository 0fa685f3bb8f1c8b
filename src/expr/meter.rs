//! The budget of one evaluation.
//!
//! The interpreter has none. So whatever may loop, copy or grow is rewritten (`rewrite`) to pass through one of our
//! functions (`guards`), which pay here before they do it. The interpreter calls functions by plain pointers, hence the
//! budget is the thread's; an evaluation begins and ends on one thread and none is inside another.

use std::cell::RefCell;
use std::sync::Arc;

use cel_interpreter::ExecutionError;
use regex::Regex;
use serde_json::Value;

use super::limits::Limits;
use super::scope::Unfit;

/// What ran out, as a sentence.
pub(super) type Overdraft = String;

struct Meter {
    limits: Limits,
    work_left: u64,
    steps_left: u64,
    patterns: Arc<[Regex]>,
    overdraft: Option<Overdraft>,
    given: Option<Result<Value, Unfit>>,
}

/// How an evaluation ended.
#[derive(Debug)]
pub(super) struct Outcome<T> {
    /// What the evaluation itself returned.
    pub(super) returned: T,
    /// The value that it gave, if it came so far.
    pub(super) given: Option<Result<Value, Unfit>>,
    /// What ran out. The expression may have swallowed the error, as `||` does.
    pub(super) overdraft: Option<Overdraft>,
    /// Turns of its loops.
    pub(super) turns: u64,
}

thread_local! {
    static METER: RefCell<Option<Meter>> = const { RefCell::new(None) };
}

/// Ends the budget also when an evaluation panics.
struct Ending;

impl Drop for Ending {
    fn drop(&mut self) {
        METER.with_borrow_mut(Option::take);
    }
}

/// Runs `evaluation` under the limits.
pub(super) fn run<T>(limits: Limits, patterns: &Arc<[Regex]>, evaluation: impl FnOnce() -> T) -> Outcome<T> {
    METER.replace(Some(Meter {
        limits,
        work_left: limits.work_max,
        steps_left: limits.steps_max,
        patterns: Arc::clone(patterns),
        overdraft: None,
        given: None,
    }));
    let ending = Ending;
    let returned = evaluation();
    let meter = METER.with_borrow_mut(Option::take);
    drop(ending);
    let turns = meter
        .as_ref()
        .map_or(0, |meter| limits.steps_max - meter.steps_left);
    let (given, overdraft) = meter.map_or((None, None), |meter| (meter.given, meter.overdraft));
    Outcome {
        returned,
        given,
        overdraft,
        turns,
    }
}

/// Puts down the value of the evaluation.
pub(super) fn give(value: Result<Value, Unfit>) {
    METER.with_borrow_mut(|meter| {
        if let Some(meter) = meter {
            meter.given = Some(value);
        }
    });
}

/// Pays for `work` (see [`super::limits::NODE_WORK`]).
pub(super) fn pay(work: u64) -> Result<(), ExecutionError> {
    with(|meter| {
        if work > meter.work_left {
            let most = meter.limits.work_max >> 20;
            return Err(format!(
                "the expression handles more than is allowed in one evaluation (some {most} MiB); filter earlier, or \
                 compute this in a step"
            ));
        }
        meter.work_left -= work;
        Ok(())
    })
}

/// Pays for a loop over `elements`.
pub(super) fn pay_loop(elements: u64) -> Result<(), ExecutionError> {
    with(|meter| {
        let limits = meter.limits;
        if elements > limits.list_max {
            return Err(format!(
                "a loop goes over {elements} elements, and {} are allowed; compute this in a step",
                limits.list_max
            ));
        }
        if elements > meter.steps_left {
            return Err(format!(
                "the loops of the expression take more than {} turns together; compute this in a step",
                limits.steps_max
            ));
        }
        meter.steps_left -= elements;
        Ok(())
    })
}

/// What is left to pay with; what is weighed need not be weighed beyond it.
pub(super) fn left() -> u64 {
    METER.with_borrow(|meter| {
        let paying = meter.as_ref().filter(|meter| meter.overdraft.is_none());
        paying.map_or(0, |meter| meter.work_left)
    })
}

/// The most elements that a list may have.
pub(super) fn list_max() -> u64 {
    METER.with_borrow(|meter| meter.as_ref().map_or(0, |meter| meter.limits.list_max))
}

/// A pattern of the expression that is evaluated.
pub(super) fn pattern(index: usize) -> Option<Regex> {
    METER.with_borrow(|meter| meter.as_ref()?.patterns.get(index).cloned())
}

fn with(pay: impl FnOnce(&mut Meter) -> Result<(), Overdraft>) -> Result<(), ExecutionError> {
    METER.with_borrow_mut(|meter| {
        let Some(meter) = meter else {
            return Err(refusal("outside of an evaluation"));
        };
        if let Some(overdraft) = &meter.overdraft {
            return Err(refusal(overdraft));
        }
        pay(meter).map_err(|overdraft| {
            let error = refusal(&overdraft);
            meter.overdraft = Some(overdraft);
            error
        })
    })
}

fn refusal(why: &str) -> ExecutionError {
    ExecutionError::function_error("@budget", why)
}
