//! The thread with a stack that the parser does not exhaust. Making one for each text costs as much as the text; so it stays
//! for a while and takes the next one. Who finds it at work makes its own: nobody waits behind another's text.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, TryLockError};
use std::thread;
use std::time::Duration;

use super::limits::COMPILE_STACK_BYTES;

type Job = Box<dyn FnOnce() + Send>;

/// How long the thread waits for another text: its memory is given back then.
const STAYS: Duration = Duration::from_secs(1);

static STAYING: Mutex<Option<Sender<Job>>> = Mutex::new(None);

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Lost {
    /// The work panicked.
    Panicked,
    /// The system has no thread left.
    NoThread,
}

/// Runs `work` on a deep stack.
pub(super) fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Lost> {
    let (give, get) = mpsc::sync_channel(1);
    let job: Job = Box::new(move || {
        // Who asked waits for it; if it does not, nobody wants it.
        drop(give.send(catch_unwind(AssertUnwindSafe(work))));
    });
    let result = |get: &Receiver<thread::Result<T>>| match get.recv() {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) | Err(_) => Err(Lost::Panicked),
    };
    let mut staying = match STAYING.try_lock() {
        Ok(staying) => staying,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            start(job, None).map_err(|_| Lost::NoThread)?;
            return result(&get);
        }
    };
    let left = match staying.as_ref() {
        Some(thread) => thread.send(job).err().map(|gone| gone.0),
        None => Some(job),
    };
    if let Some(job) = left {
        let (next, jobs) = mpsc::channel();
        start(job, Some(jobs)).map_err(|_| Lost::NoThread)?;
        *staying = Some(next);
    }
    let done = result(&get);
    drop(staying);
    done
}

fn start(first: Job, then: Option<Receiver<Job>>) -> io::Result<()> {
    let thread = thread::Builder::new()
        .name("expression".to_owned())
        .stack_size(COMPILE_STACK_BYTES);
    let work = move || {
        first();
        while let Some(Ok(job)) = then.as_ref().map(|jobs| jobs.recv_timeout(STAYS)) {
            job();
        }
    };
    thread.spawn(work).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_and_the_next_work_is_done() {
        assert!(matches!(run(|| panic!("no")), Err::<(), _>(Lost::Panicked)));
        for number in 0..100 {
            assert_eq!(run(move || number + 1).ok(), Some(number + 1));
        }
    }

    #[test]
    fn nobody_waits_behind_another() {
        let (begun, begins) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let long = thread::spawn(move || {
            run(move || {
                begun.send(()).expect("somebody listens");
                ends.recv().expect("somebody ends it");
            })
        });
        begins.recv().expect("it begins");
        assert_eq!(run(|| 7).ok(), Some(7));
        end.send(()).expect("it listens");
        assert!(long.join().expect("it ends").is_ok());
    }
}
