//! A load that does not wait: requests become due at a fixed rate over many connections.
//!
//! Each connection has its own even schedule. One whose answer is late sends the next request as soon as it has the
//! answer, and what became due more than a second ago is given up, as a client with a timeout would; it still counts as
//! due.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::bench::load::{Script, Wire, quantile};
use crate::clock;
use crate::failure::{Context, Outcome};

/// After so long a client gives up what it wanted to ask.
const GIVEN_UP: Duration = Duration::from_secs(1);

pub struct Offer {
    pub per_second: f64,
    pub connections: usize,
    pub duration: Duration,
}

/// What became of an offer.
#[derive(Default)]
pub struct Answers {
    pub due: u64,
    pub sent: u64,
    pub served: u64,
    /// 429 and 503 with `Retry-After`.
    pub refused: u64,
    /// Refusals after which the connection ended.
    pub closed: u64,
    /// The first of everything else.
    pub wrong: Vec<String>,
    /// Connections that ended without an answer, or could not be opened.
    pub lost: u64,
    pub p50: Duration,
    pub p99: Duration,
    pub duration: Duration,
    latencies: Vec<Duration>,
}

/// Offers, and calls `each_second` with the seconds that have passed.
pub fn offer(
    address: SocketAddr,
    script: &Script,
    offer: &Offer,
    each_second: &mut dyn FnMut(u64, &Answers),
) -> Outcome<Answers> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    let answers = Rc::new(RefCell::new(Answers::default()));
    let start = clock::now();
    #[expect(clippy::cast_precision_loss, reason = "some thousands are exact")]
    let period = Duration::from_secs_f64(offer.connections as f64 / offer.per_second);
    LocalSet::new().block_on(&runtime, async {
        let mut tasks = Vec::new();
        for number in 0..offer.connections {
            let count = u32::try_from(offer.connections).unwrap_or(u32::MAX);
            let phase = period * u32::try_from(number).unwrap_or(0) / count;
            let schedule = Schedule {
                next: start + phase,
                period,
                end: start + offer.duration,
            };
            let wire = script.wire(number);
            tasks.push(tokio::task::spawn_local(keep_asking(
                address,
                wire,
                schedule,
                Rc::clone(&answers),
            )));
        }
        for second in 1..=offer.duration.as_secs() {
            tokio::time::sleep_until((start + Duration::from_secs(second)).into()).await;
            each_second(second, &answers.borrow());
        }
        for task in tasks {
            task.await.context("a connection panicked")?;
        }
        Ok(())
    })?;
    let mut answers = answers.take();
    answers.duration = start.elapsed();
    answers.latencies.sort_unstable();
    answers.p50 = quantile(&answers.latencies, 50);
    answers.p99 = quantile(&answers.latencies, 99);
    Ok(answers)
}

struct Schedule {
    next: Instant,
    period: Duration,
    end: Instant,
}

impl Schedule {
    /// The next instant at which something is due; counts what became due and is given up.
    fn advance(&mut self, answers: &RefCell<Answers>) -> Option<Instant> {
        let now = clock::now();
        let mut answers = answers.borrow_mut();
        while self.next + GIVEN_UP < now && self.next < self.end {
            self.next += self.period;
            answers.due += 1;
        }
        if self.next >= self.end {
            return None;
        }
        let due = self.next;
        self.next += self.period;
        answers.due += 1;
        Some(due)
    }
}

async fn keep_asking(
    address: SocketAddr,
    mut wire: Wire,
    mut schedule: Schedule,
    answers: Rc<RefCell<Answers>>,
) {
    let mut stream: Option<TcpStream> = None;
    let mut buffer = vec![0; 64 * 1024];
    while let Some(due) = schedule.advance(&answers) {
        tokio::time::sleep_until(due.into()).await;
        let opened = match stream.take() {
            Some(open) => Ok(open),
            None => connect(address).await,
        };
        let Ok(mut open) = opened else {
            answers.borrow_mut().lost += 1;
            continue;
        };
        let sent = clock::now();
        answers.borrow_mut().sent += 1;
        let answer = wire.ask(&mut open, &mut buffer).await;
        let mut answers = answers.borrow_mut();
        match answer {
            Ok(answer) if answer.status / 100 == 2 => {
                answers.served += 1;
                answers.latencies.push(sent.elapsed());
                stream = (!answer.closes).then_some(open);
            }
            Ok(answer) if matches!(answer.status, 429 | 503) && answer.has_retry_after => {
                answers.refused += 1;
                answers.closed += u64::from(answer.closes);
                stream = (!answer.closes).then_some(open);
            }
            Ok(answer) => {
                if answers.wrong.len() < 10 {
                    answers.wrong.push(answer.beginning);
                }
            }
            Err(_) => answers.lost += 1,
        }
    }
}

async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
