//! One life of the server: from a start to a stop, a crash, or the end of the run.

use crate::client::{self, Client};
use crate::dice::Dice;
use crate::judge::Book;
use crate::simulated_faults::{End, SimulatedFaults};
use crate::support::App;
use crate::world::Calls;
use provost_areas_platform::audit;
use provost_kernel::supervisor::Supervisor;
use provost_server::background;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// 2038-01-19T03:14:07.500Z, 2028-02-28T23:59:59.500Z
const FAR: [i64; 2] = [2_147_483_647_500, 1_835_395_199_500];

/// What outlives the server: the clients and the book.
pub struct State {
    pub clients: Vec<Client>,
    pub book: Book,
    dice: Dice,
    /// By how much the wall clock was set by hours and days. Units: milliseconds.
    moved: i64,
    /// By how much it is away in another year.
    far: i64,
}

impl State {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 1);
        let count = dice.below(4) + 3;
        Self {
            clients: (0..count).map(|number| Client::new(seed, number)).collect(),
            book: Book::default(),
            dice,
            moved: 0,
            far: 0,
        }
    }
}

/// See the module's text.
pub struct Life {
    pub app: App,
    pub weather: Arc<SimulatedFaults>,
    pub calls: Arc<Calls>,
    pub state: Arc<Mutex<State>>,
    restart: Notify,
    workers: Notify,
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeEnd {
    /// The process is gone; the next life begins with what the weather kept.
    Crashed,
    /// The store failed and the process was killed.
    Killed,
    /// The server was stopped as an operator does it.
    Stopped,
    /// Every client is done.
    Done,
}

impl Life {
    pub fn new(app: App, weather: Arc<SimulatedFaults>, calls: Arc<Calls>, state: Arc<Mutex<State>>) -> Self {
        Self {
            app,
            weather,
            calls,
            state,
            restart: Notify::new(),
            workers: Notify::new(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether the process is gone, so that no answer arrives any more.
    pub fn is_dead(&self) -> bool {
        self.weather.end() == Some(End::Crashed)
    }

    pub fn is_stopping(&self) -> bool {
        self.weather.is_stopping()
    }

    pub fn is_far(&self) -> bool {
        self.lock().far != 0
    }

    /// Reads the log behind what is known of it; says whether it could, which a server that stops may refuse.
    pub async fn read_log(&self) -> bool {
        let from = self.lock().book.log();
        let entries = Book::read(&self.app, from).await;
        let mut state = self.lock();
        for line in self.weather.lines() {
            state.book.line(line);
        }
        match entries {
            Ok(entries) => {
                state.book.take(&entries);
                !self.is_dead()
            }
            Err(error) => {
                assert!(self.is_stopping() || self.is_dead(), "{error}");
                false
            }
        }
    }

    /// Sets the wall clock: by an hour, a day, or into another year and back.
    pub fn move_clock(&self, place: usize) {
        if self.weather.is_calm() || self.is_stopping() {
            return;
        }
        if self.is_far() {
            return self.come_back();
        }
        let now = self.app.kernel.clock.now().as_ms();
        let mut state = self.lock();
        let dice = &mut state.clients[place].dice;
        let by = match dice.below(12) {
            0..3 => HOUR_MS,
            3..6 => -HOUR_MS,
            6..8 => DAY_MS,
            8..10 => -DAY_MS,
            far => {
                let by = FAR[far - 10] - now;
                state.far = by;
                state.book.forget_keys();
                by
            }
        };
        if state.far == 0 {
            if !(-3 * DAY_MS..=8 * DAY_MS).contains(&(state.moved + by)) {
                return;
            }
            state.moved += by;
        }
        state.book.moves += 1;
        state.book.line(format!("clock by {by} ms"));
        drop(state);
        self.weather.count("clock");
        self.app.clock.step_ms(by);
    }

    pub fn come_back(&self) {
        let mut state = self.lock();
        let by = -std::mem::take(&mut state.far);
        state.book.moves += 1;
        state.book.line(format!("clock back by {by} ms"));
        drop(state);
        self.weather.count("clock");
        self.app.clock.step_ms(by);
    }

    pub fn end_workers(&self) {
        if !self.weather.is_calm() && !self.is_stopping() {
            self.workers.notify_one();
        }
    }

    pub fn ask_for_restart(&self) {
        if !self.weather.is_calm() && !self.is_stopping() {
            self.weather.stop();
            self.restart.notify_one();
        }
    }

    fn line(&self, line: &str) {
        self.lock().book.line(line.to_owned());
    }
}

/// Lives until something ends it.
pub async fn live(life: &Arc<Life>) -> LifeEnd {
    let kernel = life.app.kernel.clone();
    {
        // A start gives the store its id; what strikes it there ends no more than the start.
        let _calm = life.weather.calm();
        audit::verify_start(&kernel, audit::ForeignStorePolicy::Refuse)
            .await
            .unwrap();
    }
    remember(life).await;
    life.read_log().await;
    life.lock().book.acknowledged();
    let mut supervisor = Supervisor::new();
    background::start(&kernel, &supervisor).unwrap();
    let mut clients = JoinSet::new();
    let count = life.lock().clients.len();
    for place in 0..count {
        let life = life.clone();
        clients.spawn(async move { client::run(&life, place).await });
    }
    loop {
        tokio::select! {
            biased;
            () = life.weather.bell.notified() => {
                if life.is_dead() {
                    return LifeEnd::Crashed;
                }
                let patience = life.lock().dice.between(1, 400);
                tokio::time::sleep(Duration::from_millis(patience)).await;
                return LifeEnd::Killed;
            }
            () = life.restart.notified() => {
                life.line("restart");
                life.weather.count("restart");
                stop(life, &supervisor).await;
                return if life.is_dead() { LifeEnd::Crashed } else { LifeEnd::Stopped };
            }
            () = life.workers.notified() => {
                life.line("workers end");
                life.weather.count("workers");
                supervisor.stop(Duration::ZERO).await;
                supervisor = Supervisor::new();
                background::start(&kernel, &supervisor).unwrap();
            }
            done = clients.join_next() => match done {
                Some(Ok(())) => {}
                Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
                None => {
                    let _calm = life.weather.calm();
                    if life.weather.end().is_some() {
                        continue;
                    }
                    crate::last::look(life).await;
                    stop(life, &supervisor).await;
                    return LifeEnd::Done;
                }
            },
        }
    }
}

/// What was committed in an earlier life is there: the last entry that was read then, under its place.
async fn remember(life: &Life) {
    let last = life.lock().book.last.clone();
    let Some(last) = last else { return };
    let entries = Book::read(&life.app, last.seq - 1).await.unwrap();
    let found = entries.first().map(|entry| entry["id"].as_str().unwrap());
    assert_eq!(found, Some(last.id.as_str()), "the store lost entry {}", last.seq);
}

async fn stop(life: &Life, supervisor: &Supervisor) {
    supervisor.stop(Duration::from_secs(5)).await;
    background::finish(&life.app.kernel).await;
    life.app.kernel.stop().await;
}
