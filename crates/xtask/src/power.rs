//! Loss of power (R4): `cargo xtask power`.
//!
//! A server works under strace, which writes down every byte that it gives to the system and every sync. From that follows
//! what a disk may hold at any moment at which the power goes: what was synced is there, of the rest some is and some is
//! not, in any order (`power/disk.rs`). Each such image is started, and must hold everything that had been acknowledged.
//!
//! INVARIANT of the method: the model of the disk, with everything that was written, is byte by byte what the server left;
//! a run in which it is not proves nothing and fails.
//!
//! Absent on purpose: PostgreSQL, whose disk is its own; the log's index (`-shm`), which is shared memory and made anew;
//! disks that lose what they said was synced.

mod disk;
pub mod history;
mod load;
mod trace;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

use crate::failure::{Context, Failure, Outcome};
use crate::faults::{base, strace};
use crate::http::{Connection, Request};
use crate::product::{self, Installation, Workplace};
use crate::random::{self, Random};
use crate::record::Record;
use crate::{clock, process};
use base::Base;
use disk::{Disk, Image, Survival};
use load::{AcknowledgedChanges, ExpectedState};
use trace::{Call, Op};

/// The folder of the segments of recorded history, in the data folder. It is not the default one: this one, and the one that
/// it lies in, are made while the trace is written, and nothing but the history lies there.
const SEGMENTS: &str = "past/segments";

/// Lose the power at random moments, with what a disk may then hold, and look for what had been acknowledged
#[derive(clap::Args)]
pub struct Arguments {
    /// How many images are tried of any moment, and at most as many of the sealing of a segment
    #[arg(long, default_value_t = 100)]
    images: u64,
    /// How many changes the server makes meanwhile
    #[arg(long, default_value_t = 300)]
    changes: u64,
    /// Repeats the choices of an earlier run; what the server writes in which order stays its own
    #[arg(long)]
    seed: Option<u64>,
    /// How many images are tried at once [default: one for each core]
    #[arg(long)]
    jobs: Option<usize>,
    /// Test this binary instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Have the disk forget every sync, and fail unless that is noticed: so it is seen that this drill can fail
    #[arg(long, conflicts_with = "record")]
    dishonest: bool,
    /// Keep what was reached for docs/assurance.md
    #[arg(long)]
    record: bool,
}

/// A disk to be started, and what must be on it.
struct Trial {
    name: String,
    image: Image,
    moment: ExpectedState,
}

#[derive(Default)]
struct Totals {
    tried: u64,
    compared: usize,
    violations: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Outcome {
    strace::find_or_install()?;
    let seed = arguments.seed.unwrap_or_else(random::fresh_seed);
    let sizes = format!("--images {} --changes {}", arguments.images, arguments.changes);
    println!("seed {seed} (again with: cargo xtask power {sizes} --seed {seed})");
    let binary = product::given(arguments.binary.as_ref(), "ci")?;
    let workplace = base::workplace("power")?;
    let base = Base::make(&binary, &workplace)?;
    let folder = workplace.folder.join("traced");
    let installation = with_segments(base.copy(&folder)?, &folder)?;
    // The store names the place that it had before.
    installation.check(&["history", "adopt"])?;
    let mut disk = Disk::of(&folder.join("data"))?;
    let ledger = work(arguments, seed, &installation, &base, &folder)?;
    let calls = trace::read(&folder.join("trace"), &folder.join("data"))?;
    let changes = ledger.changes();
    let imports = ledger.imports();
    println!(
        "{changes} changes and {imports} imports were acknowledged, and {} calls were written down.",
        calls.len()
    );
    let moments = moments(
        arguments.images,
        seed,
        &calls,
        &folder.join("data").join(SEGMENTS),
    )?;
    let jobs = arguments
        .jobs
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let totals = Mutex::new(Totals::default());
    let mut waited = 0;
    let (of, shows) = (moments.len(), !arguments.dishonest);
    let (give, take) = sync_channel::<Trial>(jobs);
    let take = Mutex::new(take);
    std::thread::scope(|scope| -> Outcome {
        let (take, totals, base, workplace) = (&take, &totals, &base, &workplace);
        for job in 0..jobs {
            let place = workplace.folder.join(format!("image-{job}"));
            scope.spawn(move || try_images(of, shows, take, totals, base, &place));
        }
        let mut random = Random::part(seed, 2);
        let mut moments = moments.into_iter().peekable();
        for (number, call) in calls.iter().enumerate() {
            while let Some((_, survival)) = moments.next_if(|(moment, _)| *moment <= number) {
                waited += usize::from(disk.waiting() > 0);
                let trial = Trial {
                    name: format!(
                        "{survival:?} before call {number} ({:.120})",
                        format!("{:?}", call.op)
                    ),
                    image: disk.image(survival, &mut random),
                    moment: ledger.at(call.at),
                };
                give.send(trial).context("nobody tries images any more")?;
            }
            if !(arguments.dishonest && matches!(call.op, Op::Sync { .. })) {
                disk.apply(call)?;
            }
        }
        drop(give);
        compare(&disk, &folder.join("data"))
    })?;
    let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    if arguments.dishonest {
        return noticed(&totals, workplace);
    }
    if !totals.violations.is_empty() {
        return Err(Failure::new(format!(
            "{} violations in {} images with seed {seed}; they are kept in {}:\n{}",
            totals.violations.len(),
            totals.tried,
            workplace.folder.display(),
            totals.violations.join("\n")
        )));
    }
    workplace.remove()?;
    let sentence = format!(
        "{} images of a disk that lost its power between two of {} calls, {waited} of them with writes that no sync had \
         followed (none of these there, all, the first, any, or torn sectors), after {changes} acknowledged changes and {imports} \
         imports that a segment was made of: each \
         started, with the store and the audit chain whole; {} acknowledged records, tokens and imports looked for, 0 lost, 0 \
         half there.",
        totals.tried,
        calls.len(),
        totals.compared,
    );
    println!("{sentence}");
    if arguments.record {
        let record = Record::new(&["R4"], sentence, format!("cargo xtask power {sizes}"));
        record.with_seeds(seed.to_string()).write("power")?;
    }
    Ok(())
}

/// When the power goes, and what of the waiting writes is there then, in the order of the calls: so many at any call, and
/// as many from the first call that seals a segment to the end, where the unit lies that makes the segment count.
fn moments(images: u64, seed: u64, calls: &[Call], segments: &Path) -> Outcome<Vec<(usize, Survival)>> {
    let mut random = Random::part(seed, 1);
    let mut draw = |end: usize| usize::try_from(random.next() % (end as u64 + 1)).unwrap_or(0);
    let any = (0..images).map(|_| {
        (
            draw(calls.len().saturating_sub(1)),
            disk::EACH[draw(disk::EACH.len() - 1)],
        )
    });
    let mut chosen: Vec<(usize, Survival)> = any.collect();
    // Not the marker of the place, and not what a start writes to see whether the place keeps it.
    let is_segment = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.parent() == Some(segments) && name.contains("segment-")
    };
    let is_file = |call: &Call| call.op.changed().is_some_and(is_segment);
    let first = calls.iter().position(is_file).context("no segment was sealed")?;
    let mut sealing: Vec<(usize, Survival)> = (first..calls.len())
        .flat_map(|number| disk::EACH.map(|survival| (number, survival)))
        .collect();
    while sealing.len() as u64 > images {
        sealing.swap_remove(draw(sealing.len() - 1));
    }
    println!(
        "{} calls seal a segment or follow on it; {} images are about them.",
        calls.len() - first,
        sealing.len()
    );
    chosen.extend(sealing);
    chosen.sort_by_key(|(moment, _)| *moment);
    Ok(chosen)
}

fn noticed(totals: &Totals, workplace: Workplace) -> Outcome {
    let (tried, seen) = (totals.tried, totals.violations.len());
    if seen == 0 {
        return Err(Failure::new(format!(
            "a disk that forgets every sync went unnoticed in {tried} images"
        )));
    }
    println!("A disk that forgets every sync was noticed: {seen} violations in {tried} images.");
    workplace.remove()
}

/// Has a traced server make changes, and kills it.
fn work(
    arguments: &Arguments,
    seed: u64,
    installation: &Installation,
    base: &Base,
    folder: &Path,
) -> Outcome<AcknowledgedChanges> {
    let address = product::free_address()?;
    let listen = address.to_string();
    let serve = installation.command(&["serve", "--listen", &listen, "--metrics-listen", "off"]);
    let log = std::fs::File::create(&installation.log).context("cannot open the log")?;
    let mut tracer = strace::recording(&serve, &folder.join("trace"), trace::CALLS)
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("cannot share the log")?)
        .stderr(log)
        .spawn()
        .context("cannot run strace")?;
    let ready = Request {
        token: None,
        ..Request::get("/readyz", "")
    };
    let is_ready = clock::poll_until(
        std::time::Duration::from_mins(1),
        std::time::Duration::from_millis(5),
        || {
            Connection::new(address)
                .send(&ready)
                .is_ok_and(|answer| answer.status == 200)
        },
    );
    let ledger = if is_ready {
        load::make(address, &base.bootstrap, seed, arguments.changes, folder)
    } else {
        Err(Failure::new("the traced server is not ready"))
    };
    strace::kill_children(tracer.id());
    tracer.wait().context("cannot wait for strace")?;
    ledger
}

/// Every file is as the calls say, so that no write went by unseen.
fn compare(disk: &Disk, folder: &Path) -> Outcome {
    let image = disk.image(Survival::Everything, &mut Random::new(0));
    for (path, content) in &image {
        let Some(content) = content else { continue };
        // Shared memory is written without a call.
        if path.extension().is_some_and(|end| end == "db-shm") {
            continue;
        }
        let real = std::fs::read(folder.join(path)).context(path.display())?;
        if real != *content {
            return Err(Failure::new(format!(
                "{} was written in a way that the trace does not show",
                path.display()
            )));
        }
    }
    Ok(())
}

fn try_images(
    of: usize,
    shows: bool,
    take: &Mutex<Receiver<Trial>>,
    totals: &Mutex<Totals>,
    base: &Base,
    place: &Path,
) {
    loop {
        let next = take.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(trial) = next else { return };
        let judged = judge(&trial, base, place);
        let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.tried += 1;
        let violations = match judged {
            Ok((compared, violations)) => {
                totals.compared += compared;
                violations
            }
            Err(failure) => vec![failure.to_string()],
        };
        if shows && !violations.is_empty() {
            let kept = place.with_extension(format!("kept-{}", totals.tried));
            drop(base::copy_folder(place, &kept));
        }
        for violation in violations {
            if shows {
                println!("VIOLATION {}: {violation}", trial.name);
            }
            totals.violations.push(format!("{}: {violation}", trial.name));
        }
        if totals.tried.is_multiple_of(50) {
            println!(
                "{} of {of} images, {} violations",
                totals.tried,
                totals.violations.len()
            );
        }
    }
}

/// Starts an image; returns how many records and tokens were looked for, and what is wrong.
fn judge(trial: &Trial, base: &Base, place: &Path) -> Outcome<(usize, Vec<String>)> {
    drop(std::fs::remove_dir_all(place));
    write(&trial.image, &place.join("data"))?;
    let installation = with_segments(base::installation(&base.binary, place), place)?;
    let mut violations = Vec::new();
    let mut server = installation.launch()?;
    server.wait_until_ready(std::time::Duration::from_secs(30))?;
    let mut connection = Connection::new(server.address);
    violations.extend(load::missing(&mut connection, &base.bootstrap, &trial.moment)?);
    drop(server);
    for words in [&["store", "check"][..], &["audit", "verify"]] {
        violations.extend(installation.check(words).err().map(|failure| failure.to_string()));
    }
    Ok((trial.moment.len(), violations))
}

/// An installation whose segments lie in [`SEGMENTS`].
fn with_segments(mut installation: Installation, folder: &Path) -> Outcome<Installation> {
    let file = folder.join("provost.toml");
    let segments = folder.join("data").join(SEGMENTS);
    std::fs::write(&file, format!("[history]\nfolder = \"{}\"\n", segments.display()))
        .context(file.display())?;
    installation.configuration = Some(file);
    Ok(installation)
}

fn write(image: &Image, folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).context(folder.display())?;
    for (path, content) in image {
        let path = folder.join(path);
        match content {
            None => std::fs::create_dir_all(&path).context(path.display())?,
            Some(content) => std::fs::write(&path, content).context(path.display())?,
        }
    }
    // Keys are taken from their owner alone.
    process::run(Command::new("chmod").args(["-R", "go-rwx"]).arg(folder))
}
