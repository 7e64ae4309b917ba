//! Whose place it is: the marker that a place of segments carries, and the store that names it.
//!
//! ```text
//! store names no place   the place is empty of markers, and holds a segment of the store's or the store has none
//!                        → a claim in the store ─ the marker, made only if there is none ─ the store names the place
//! store names a place    the marker says the same → ours; another one, none, or one that cannot be read → not ours
//! ```
//!
//! INVARIANT HS-13: nothing is sealed into a place, and nothing of a history is removed from a place or from the store, unless
//! the place carries the marker that the store names.
//!
//! A wrong folder, a share that is not mounted and the bucket of another store all look like an empty place to whoever trusts
//! the configuration alone. The marker is read anew before each round of work. A claim lets one server at a time make a marker,
//! so that two servers that begin with folders of their own do not both take theirs for the one.

use super::store::{self, File};
use super::{Place, retain};
use crate::store::{DROP_FACT, drop_fact, fact, set_fact};
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Call, Conn, Param, Tx};
use provost_kernel::id::TypedId;
use provost_kernel::{Cx, Kernel, Result, Timestamp, id};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

id!(PlaceId, "plc", "Names a place of segments.");
id!(
    ProbeId,
    "prb",
    "Names an object that is written to see whether it is kept."
);

/// The name of the marker among the segments.
pub const MARKER: &str = "place.json";
/// The fact that names the store's place.
const NAMED: &str = "history_place";
/// The fact that says who makes a marker, and since when.
const CLAIMED: &str = "history_place_claim";
/// How long a server has to make a marker.
const CLAIM_SECS: i64 = 300;
/// LIMIT: bytes of a marker; more is no marker.
const MARKER_BYTES: u64 = 4_096;
/// How many of the newest segments are looked for in a place that nobody named.
const LOOKED_FOR: usize = 16;

/// What a marker says. More may come.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marker {
    place_id: String,
}

/// How a place stands to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It carries the marker that the store names.
    Ours,
    /// Another server is about to mark it.
    Claimed,
    /// It carries no marker, and the store names one.
    Unmarked,
    /// It carries the marker of another store.
    Foreign,
    /// The store has segments, names no place yet, and none of them is there.
    Strange,
    /// It cannot be read.
    Unreadable(String),
}

impl Standing {
    /// Returns what is wrong and the next step, as a sentence; none where nothing is.
    pub fn fault(&self) -> Option<String> {
        let what = match self {
            Self::Ours | Self::Claimed => return None,
            Self::Unmarked => {
                "carries no marker of this store: it may be another folder, or a share that is not mounted"
            }
            Self::Foreign => "carries the marker of another store",
            Self::Strange => "holds none of the segments that this store names",
            Self::Unreadable(error) => {
                return Some(format!(
                    "the place of the history cannot be read ({error}): nothing is sealed or removed until it can, and events \
                     stay in the database"
                ));
            }
        };
        Some(format!(
            "the place of the history {what}. Nothing is sealed or removed until that is put right, and events stay in the \
             database: correct `history` in the configuration, or bring the segments in with `provost history adopt FOLDER`"
        ))
    }
}

/// Returns the place that the store names, from one snapshot.
pub fn named(tx: &mut Tx<'_>) -> Result<Option<String>> {
    fact(tx, NAMED)
}

/// Returns how a place stands to a store that names this one, or none. It blocks.
pub fn standing(place: &Place, named: Option<&str>, files: &[File]) -> Standing {
    judge(&marker(place), named, || fits(place, files))
}

fn judge(found: &io::Result<Option<String>>, named: Option<&str>, fits: impl FnOnce() -> bool) -> Standing {
    match (found, named) {
        (Err(error), _) => Standing::Unreadable(error.to_string()),
        (Ok(Some(found)), Some(named)) if found == named => Standing::Ours,
        (Ok(Some(_)), _) => Standing::Foreign,
        (Ok(None), Some(_)) => Standing::Unmarked,
        (Ok(None), None) if fits() => Standing::Claimed,
        (Ok(None), None) => Standing::Strange,
    }
}

/// Returns the id that the marker of a place says; none without a marker.
fn marker(place: &Place) -> io::Result<Option<String>> {
    let size = match place.0.size(MARKER) {
        Ok(size) if size <= MARKER_BYTES => size,
        Ok(_) => return Ok(Some(String::new())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let bytes = place.0.read(MARKER, 0, usize::try_from(size).unwrap_or(0))?;
    // What is no marker of ours is somebody else's.
    let marker = serde_json::from_slice::<Marker>(&bytes).ok();
    Ok(Some(marker.map(|marker| marker.place_id).unwrap_or_default()))
}

/// Marks a place, unless it is marked; says whether it did.
fn mark(place: &Place, id: &str) -> io::Result<bool> {
    let marker = Marker {
        place_id: id.to_owned(),
    };
    place.0.create(MARKER, &serde_json::to_vec(&marker)?)
}

/// Says whether a place without a marker can be the one of these segments: it holds one of them, or there are none.
fn fits(place: &Place, files: &[File]) -> bool {
    let is_there = |file: &File| {
        place
            .0
            .size(&file.name)
            .is_ok_and(|size| i64::try_from(size) == Ok(file.size_bytes))
    };
    files.is_empty() || files.iter().rev().take(LOOKED_FOR).any(is_there)
}

/// Returns the place if it is the store's, which is looked at anew (HS-13). A place that nobody named yet becomes the store's if
/// it can be.
pub(super) async fn ours(kernel: &Arc<Kernel>) -> Result<Option<Place>> {
    let Some(place) = kernel.extra::<Place>() else {
        return Ok(None);
    };
    let standing = settle(kernel, place).await?;
    metrics::gauge!("provost_history_place_usable").set(f64::from(u8::from(standing == Standing::Ours)));
    Ok((standing == Standing::Ours).then(|| place.clone()))
}

async fn settle(kernel: &Arc<Kernel>, place: &Place) -> Result<Standing> {
    let (named, claimed) = kernel
        .read_system(|tx| Ok((fact(tx, NAMED)?, fact(tx, CLAIMED)?)))
        .await?;
    let at = place.clone();
    let found = kernel.blocking(move || marker(&at)).await?;
    if named.is_some() {
        return Ok(judge(&found, named.as_deref(), || false));
    }
    if let Ok(Some(found)) = &found {
        // A server that claimed the place has marked it and went no further.
        let is_claimed = claimed
            .as_deref()
            .and_then(Claim::parse)
            .is_some_and(|claim| claim.id == *found);
        if !is_claimed {
            return Ok(Standing::Foreign);
        }
        name(kernel, found.clone()).await?;
        return Ok(Standing::Ours);
    }
    let files = kernel.read_system(store::files).await?;
    let at = place.clone();
    let standing = kernel
        .blocking(move || judge(&found, None, || fits(&at, &files)))
        .await?;
    if standing != Standing::Claimed {
        return Ok(standing);
    }
    let Some(id) = claim(kernel).await? else {
        return Ok(Standing::Claimed);
    };
    let (at, of) = (place.clone(), id.clone());
    match kernel.blocking(move || mark(&at, &of)).await? {
        Ok(true) => {
            name(kernel, id).await?;
            Ok(Standing::Ours)
        }
        Ok(false) => Ok(Standing::Claimed),
        Err(error) => Ok(Standing::Unreadable(error.to_string())),
    }
}

struct Claim {
    id: String,
    since: Timestamp,
}

impl Claim {
    fn parse(text: &str) -> Option<Self> {
        let (id, since) = text.split_once(' ')?;
        Some(Self {
            id: id.to_owned(),
            since: Timestamp::from_ms(since.parse().ok()?),
        })
    }
}

/// Claims the right to mark a place; none while another server has it.
async fn claim(kernel: &Arc<Kernel>) -> Result<Option<String>> {
    let id = PlaceId::mint(kernel.clock.now(), &mut kernel.rng());
    let (wanted, taken) = (id.as_str().to_owned(), Arc::new(AtomicBool::new(false)));
    let sink = taken.clone();
    let run = move |cx: &mut Cx<'_>| {
        let now = cx.now();
        let known = fact(&mut cx.tx(), CLAIMED)?;
        let is_held = known
            .as_deref()
            .and_then(Claim::parse)
            .is_some_and(|claim| claim.since.plus_secs(CLAIM_SECS) > now && claim.since <= now);
        if is_held || fact(&mut cx.tx(), NAMED)?.is_some() {
            return Ok(());
        }
        set_fact(cx, CLAIMED, &format!("{wanted} {}", now.as_ms()))?;
        sink.store(true, Ordering::SeqCst);
        Ok(())
    };
    kernel.system(OrganizationId::installation(), None, run).await?;
    Ok(taken.load(Ordering::SeqCst).then(|| id.as_str().to_owned()))
}

/// Makes a place the store's.
async fn name(kernel: &Arc<Kernel>, id: String) -> Result<()> {
    let run = move |cx: &mut Cx<'_>| set_fact(cx, NAMED, &id);
    kernel.system(OrganizationId::installation(), None, run).await
}

/// Makes a place the store's whatever it was before, in its own entry of the audit log; the marker of another store is replaced.
///
/// Errors: those of the place, as a sentence, in the inner result.
pub async fn take(kernel: &Arc<Kernel>, place: &Place) -> Result<io::Result<()>> {
    let id = PlaceId::mint(kernel.clock.now(), &mut kernel.rng());
    let (at, of) = (place.clone(), id.as_str().to_owned());
    let marked = move || -> io::Result<()> {
        at.0.remove(MARKER)?;
        if mark(&at, &of)? {
            return Ok(());
        }
        Err(io::Error::other("another program marked it meanwhile"))
    };
    if let Err(error) = kernel.blocking(marked).await? {
        return Ok(Err(error));
    }
    let run = move |cx: &mut Cx<'_>| {
        let before = fact(&mut cx.tx(), NAMED)?;
        cx.change("/historyPlace", before, id.as_str());
        set_fact(cx, NAMED, id.as_str())
    };
    kernel
        .system(OrganizationId::installation(), Some("history.adopted"), run)
        .await?;
    Ok(Ok(()))
}

/// Lets the store name no place: what it is restored into is another one than the place of the store that was backed up.
pub fn forget(cx: &mut Cx<'_>) -> Result<()> {
    drop_fact(cx, NAMED)?;
    drop_fact(cx, CLAIMED)
}

/// Lets a store that no server uses name no place, as far as it has no segments: the folder of the machine that it was moved
/// from is not the one of its next server, and nothing of the store lies in it.
///
/// Errors: those of the store, which is as it was then.
pub fn forget_empty(conn: &mut Conn) -> Result<()> {
    if !conn.read(store::files)?.is_empty() {
        return Ok(());
    }
    let forget = |name: &str| Call {
        statement: &DROP_FACT,
        params: vec![Param::from(name.to_owned())],
    };
    conn.change(&[forget(NAMED), forget(CLAIMED)])
}

/// What was said of the place last, so that a change is said at once.
#[derive(Default)]
pub struct Said(Mutex<Option<String>>);

/// Looks at the place and says what is wrong with it; at a start also whether it keeps what is written, and removes what nobody
/// names any more. Errors are of the store.
pub async fn watch(kernel: &Arc<Kernel>, is_start: bool) -> Result<()> {
    let Some(place) = kernel.extra::<Place>() else {
        return Ok(());
    };
    let standing = settle(kernel, place).await?;
    let is_ours = standing == Standing::Ours;
    let mut fault = standing.fault();
    if is_ours && is_start {
        let (at, id) = (
            place.clone(),
            ProbeId::mint(kernel.clock.now(), &mut kernel.rng()),
        );
        let kept = kernel.blocking(move || probe(&at, id.as_str())).await?;
        fault = kept.err().map(|error| {
            format!(
                "the place of the history cannot be written and read back ({error}): nothing will be sealed, and events stay in \
                 the database; see that the server may write there and that there is room"
            )
        });
    }
    let is_usable = is_ours && fault.is_none();
    metrics::gauge!("provost_history_place_usable").set(f64::from(u8::from(is_usable)));
    say(kernel, fault);
    if is_usable {
        retain::sweep(kernel, place).await?;
    }
    Ok(())
}

fn say(kernel: &Kernel, fault: Option<String>) {
    let said = kernel.own(Said::default);
    let mut last = said.0.lock().unwrap_or_else(PoisonError::into_inner);
    match &fault {
        Some(fault) => tracing::warn!("{fault}"),
        None if last.is_some() => tracing::info!("the place of the history is usable again"),
        None => {}
    }
    *last = fault;
}

/// Writes an object, reads it back and removes it.
fn probe(place: &Place, name: &str) -> io::Result<()> {
    let content = name.as_bytes();
    place.0.create(name, content)?;
    let back = place.0.read(name, 0, content.len());
    let removed = place.0.remove(name);
    if back? != content {
        return Err(io::Error::other("it returns something else than was written"));
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_stores_by_its_marker_alone() {
        let marked = |id: &str| Ok(Some(id.to_owned()));
        for (found, named, fits, expected) in [
            (marked("plc_a"), Some("plc_a"), false, Standing::Ours),
            (marked("plc_b"), Some("plc_a"), true, Standing::Foreign),
            (marked("plc_b"), None, true, Standing::Foreign),
            (marked(""), Some("plc_a"), true, Standing::Foreign),
            (Ok(None), Some("plc_a"), true, Standing::Unmarked),
            (Ok(None), None, true, Standing::Claimed),
            (Ok(None), None, false, Standing::Strange),
        ] {
            let standing = judge(&found, named, || fits);
            assert_eq!(standing, expected, "{found:?} {named:?}");
            let is_quiet = matches!(expected, Standing::Ours | Standing::Claimed);
            assert_eq!(standing.fault().is_none(), is_quiet, "{expected:?}");
        }
        let broken = Err(io::Error::other("no such host"));
        let said = judge(&broken, Some("plc_a"), || true).fault().unwrap();
        assert!(said.contains("no such host"), "{said}");
    }

    #[test]
    fn a_claim_is_an_id_and_an_instant() {
        let claim = Claim::parse("plc_a 17").unwrap();
        assert_eq!((claim.id.as_str(), claim.since.as_ms()), ("plc_a", 17));
        assert!(Claim::parse("plc_a").is_none() && Claim::parse("plc_a x").is_none());
    }
}
