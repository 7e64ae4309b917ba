//! Shuttle's primitives in the place of [`crate::sync`]: at each of them the test decides which thread goes on.

pub(super) use shuttle::sync::{Mutex, MutexGuard, RwLock, atomic};
pub(super) use shuttle::thread;
pub(super) use std::sync::PoisonError;

/// As much of flume as the kernel uses. As with flume, what was sent stays in the channel when its last receiver goes,
/// until the last sender goes as well.
pub(super) mod channel {
    use super::PoisonError;
    use shuttle::rand::{Rng, thread_rng};
    use shuttle::sync::{Condvar, Mutex, MutexGuard};
    use shuttle::thread;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::time::Duration;

    pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

    struct Channel<T> {
        state: Mutex<State<T>>,
        changed: Condvar,
        bound: usize,
    }

    struct State<T> {
        messages: VecDeque<T>,
        senders: usize,
        receivers: usize,
    }

    pub struct Sender<T>(Arc<Channel<T>>);

    pub struct Receiver<T>(Arc<Channel<T>>);

    pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
        bounded(usize::MAX)
    }

    pub fn bounded<T>(bound: usize) -> (Sender<T>, Receiver<T>) {
        let state = State {
            messages: VecDeque::new(),
            senders: 1,
            receivers: 1,
        };
        let channel = Arc::new(Channel {
            state: Mutex::new(state),
            changed: Condvar::new(),
            bound,
        });
        (Sender(channel.clone()), Receiver(channel))
    }

    impl<T> Channel<T> {
        fn lock(&self) -> MutexGuard<'_, State<T>> {
            self.state.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn sleep<'a>(&self, state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
            self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
        }
    }

    impl<T> Sender<T> {
        pub fn send(&self, message: T) -> Result<(), SendError<T>> {
            let mut state = self.0.lock();
            while state.messages.len() >= self.0.bound && state.receivers > 0 {
                state = self.0.sleep(state);
            }
            if state.receivers == 0 {
                return Err(SendError(message));
            }
            state.messages.push_back(message);
            self.0.changed.notify_all();
            Ok(())
        }

        pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
            let mut state = self.0.lock();
            if state.receivers == 0 {
                return Err(TrySendError::Disconnected(message));
            }
            if state.messages.len() >= self.0.bound {
                return Err(TrySendError::Full(message));
            }
            state.messages.push_back(message);
            self.0.changed.notify_all();
            Ok(())
        }
    }

    impl<T> Receiver<T> {
        pub fn recv(&self) -> Result<T, RecvError> {
            let mut state = self.0.lock();
            loop {
                if let Some(message) = state.messages.pop_front() {
                    self.0.changed.notify_all();
                    return Ok(message);
                }
                if state.senders == 0 {
                    return Err(RecvError);
                }
                state = self.0.sleep(state);
            }
        }

        pub fn try_recv(&self) -> Result<T, TryRecvError> {
            let mut state = self.0.lock();
            match state.messages.pop_front() {
                Some(message) => {
                    self.0.changed.notify_all();
                    Ok(message)
                }
                None if state.senders == 0 => Err(TryRecvError::Disconnected),
                None => Err(TryRecvError::Empty),
            }
        }

        /// There is no time here: the wait is over at once, or after a few turns of the others.
        pub fn recv_timeout(&self, _: Duration) -> Result<T, RecvTimeoutError> {
            for _ in 0..=thread_rng().gen_range(0..3) {
                match self.try_recv() {
                    Ok(message) => return Ok(message),
                    Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                    Err(TryRecvError::Empty) => thread::yield_now(),
                }
            }
            Err(RecvTimeoutError::Timeout)
        }

        /// Nothing here is a task; it is there so that the file that calls it can be read.
        pub fn recv_async(&self) -> impl Future<Output = Result<T, RecvError>> {
            std::future::ready(self.recv())
        }
    }

    impl<T> Clone for Receiver<T> {
        fn clone(&self) -> Self {
            self.0.lock().receivers += 1;
            Self(self.0.clone())
        }
    }

    impl<T> Drop for Sender<T> {
        fn drop(&mut self) {
            self.0.lock().senders -= 1;
            self.0.changed.notify_all();
        }
    }

    impl<T> Drop for Receiver<T> {
        fn drop(&mut self) {
            self.0.lock().receivers -= 1;
            self.0.changed.notify_all();
        }
    }
}
