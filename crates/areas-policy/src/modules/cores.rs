//! Who may judge on a thread of its own: as many at once as there are processors, and no organization on all of them.
//!
//! INVARIANT DE-11: what one organization asks never takes every processor from the others: where there are several,
//! one is left.

use provost_kernel::Kernel;
use provost_kernel::auth::OrganizationId;
use provost_kernel::error::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The permits of a process.
struct Cores {
    all: Arc<Semaphore>,
    /// How many one organization may have.
    share: usize,
    shares: Mutex<HashMap<OrganizationId, Arc<Semaphore>>>,
}

/// A permit, until it is dropped.
#[derive(Debug)]
pub struct Core {
    _all: OwnedSemaphorePermit,
    _share: OwnedSemaphorePermit,
}

impl Cores {
    fn new(cores: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(cores)),
            share: cores.saturating_sub(1).max(1),
            shares: Mutex::default(),
        }
    }

    /// Returns the share of an organization; those that nobody uses are forgotten.
    fn share(&self, organization: &OrganizationId) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|of, share| of == organization || Arc::strong_count(share) > 1);
        let share = shares.entry(organization.clone());
        share
            .or_insert_with(|| Arc::new(Semaphore::new(self.share)))
            .clone()
    }

    async fn core(&self, organization: &OrganizationId) -> Result<Core> {
        // The share first: whoever waits for it stands in nobody's way.
        let share = self.share(organization).acquire_owned().await;
        let all = self.all.clone().acquire_owned().await;
        match (all, share) {
            (Ok(all), Ok(share)) => Ok(Core {
                _all: all,
                _share: share,
            }),
            _ => Err(Error::unavailable("the server is shutting down")),
        }
    }
}

/// Waits for a processor.
///
/// Errors: `Unavailable` when the server is shutting down.
pub async fn core(kernel: &Kernel, organization: &OrganizationId) -> Result<Core> {
    let cores = || Cores::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    kernel.own(cores).core(organization).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    fn organization(name: &str) -> OrganizationId {
        OrganizationId::from_store(name.to_owned())
    }

    fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Proves DE-11.
    #[test]
    fn one_organization_leaves_a_processor_to_the_others() {
        let cores = Cores::new(2);
        let (loud, quiet) = (organization("loud"), organization("quiet"));
        let Poll::Ready(Ok(first)) = poll(pin!(cores.core(&loud))) else {
            panic!("the first is free");
        };
        let mut second = pin!(cores.core(&loud));
        assert!(poll(second.as_mut()).is_pending());
        let neighbour = poll(pin!(cores.core(&quiet)));
        assert!(matches!(neighbour, Poll::Ready(Ok(_))));
        drop(first);
        assert!(matches!(poll(second), Poll::Ready(Ok(_))));
    }

    /// Proves DE-11.
    #[test]
    fn a_single_processor_is_everybodys() {
        let cores = Cores::new(1);
        let Poll::Ready(Ok(first)) = poll(pin!(cores.core(&organization("one")))) else {
            panic!("the first is free");
        };
        let other = organization("other");
        let mut second = pin!(cores.core(&other));
        assert!(poll(second.as_mut()).is_pending());
        drop(first);
        assert!(matches!(poll(second), Poll::Ready(Ok(_))));
    }

    #[test]
    fn a_share_that_nobody_uses_is_forgotten() {
        let cores = Cores::new(4);
        for n in 0..100 {
            let held = poll(pin!(cores.core(&organization(&format!("organization-{n}")))));
            assert!(matches!(held, Poll::Ready(Ok(_))));
        }
        assert!(cores.shares.lock().unwrap().len() <= 2);
    }
}
