//! Whose place it is: the marker that a place of segments carries, and the store that names it.
//!
//! ```text
//! store names no place   the place is empty of markers, and holds a segment of the store's or the store has none
//!                        → a claim in the store ─ the marker, made only if there is none ─ the store names the place
//!                        the marker says this store, and the place could be marked by it → the store names the place
//! store names a place    the marker says the same, and no other store → ours; another one, none, or one that cannot be
//!                        read → not ours
//! ```
//!
//! INVARIANT HS-13: nothing is sealed into a place, and nothing of a history is removed from a place or from the
//! store, unless the place carries the marker that the store names, and that names no other store.
//!
//! A wrong folder, a share that is not mounted and the bucket of another store all look like an empty place to whoever trusts
//! the configuration alone. The marker is read anew before each round of work. A claim lets one server at a time make a marker,
//! so that two servers that begin with folders of their own do not both take theirs for the one.
//!
//! A marker says of which store it is, so that a restored store, which is another one and names no place, can say whose place it
//! found. One of an earlier build says its own id alone; the store that names it completes it.

use super::store::{self, File};
use super::{SegmentPlace, retain};
use provost_areas_platform::identity;
use provost_areas_platform::store::{DROP_FACT, drop_fact, fact, set_fact};
use provost_kernel::auth::OrganizationId;
use provost_kernel::db::{Call, Conn, Param, Tx};
use provost_kernel::id::TypedId;
use provost_kernel::keys::Keys;
use provost_kernel::{Kernel, OperationContext, Result, Timestamp, id};
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
/// The fact that names the store from whose backup this one was restored.
const FORMER: &str = "history_former_store";
/// How long a server has to make a marker.
const CLAIM_SECS: i64 = 300;
/// LIMIT: bytes of a marker; more is no marker.
const MARKER_BYTES: u64 = 4_096;
/// How many of the newest segments are looked for in a place that nobody named.
const LOOKED_FOR: usize = 16;

/// What a marker says. More may come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marker {
    place_id: String,
    /// None in one of an earlier build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store_id: Option<String>,
}

impl Marker {
    /// Says whether the marker can be one of this store: it says no other.
    fn may_be_of(&self, store: Option<&str>) -> bool {
        match (self.store_id.as_deref(), store) {
            (Some(said), Some(store)) => said == store,
            _ => true,
        }
    }
}

/// What a store says of itself and its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The place that it names.
    pub place: Option<String>,
    /// Its id; none before its first start.
    pub store: Option<String>,
    /// The id of the store from whose backup it was restored.
    pub former: Option<String>,
}

/// Returns what a store says, from one snapshot.
///
/// Errors: `AuditUnavailable` when somebody changed its identity from outside.
pub fn holder(tx: &mut Tx<'_>, keys: &Keys) -> Result<Holder> {
    Ok(Holder {
        place: fact(tx, NAMED)?,
        store: identity::read(tx, keys)?.map(|identity| identity.id),
        former: fact(tx, FORMER)?,
    })
}

/// How a place stands to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceStanding {
    /// It carries the marker that the store names.
    Ours,
    /// Another server is about to mark it.
    Claimed,
    /// It carries no marker, and the store names one.
    Unmarked,
    /// It carries the marker of another store.
    Foreign {
        /// Which one, as far as the marker says it.
        store: Option<String>,
        /// Whether this one was restored from a backup of that one.
        is_former: bool,
    },
    /// The store has segments, names no place yet, and none of them is there.
    Strange,
    /// It cannot be read.
    Unreadable(String),
}

impl PlaceStanding {
    /// Returns what is wrong and the next step, as a sentence; none where nothing is.
    pub fn fault(&self) -> Option<String> {
        let what = match self {
            Self::Ours | Self::Claimed => return None,
            Self::Unmarked => {
                "carries no marker of this store: it may be another folder, or a share that is not mounted"
                    .to_owned()
            }
            Self::Foreign { store, is_former } => {
                let whose = whose(store.as_deref(), *is_former);
                if *is_former {
                    return Some(format!(
                        "the place of the history carries the marker of {whose}. Nothing is sealed or removed, and events stay in the \
                         database: if that store is served no more, say `provost history adopt --take-over`; otherwise give this one \
                         a place of its own in `history` of the configuration, and bring the segments in with `provost history adopt \
                         FOLDER`"
                    ));
                }
                format!("carries the marker of {whose}")
            }
            Self::Strange => "holds none of the segments that this store names".to_owned(),
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

/// Returns how people are told of the store that marked a place.
pub fn whose(store: Option<&str>, is_former: bool) -> String {
    match store {
        Some(store) if is_former => format!("the store {store}, from whose backup this one was restored"),
        Some(store) => format!("another store, {store}"),
        None => "another store".to_owned(),
    }
}

/// Returns how a place stands to a store. It blocks.
pub fn standing(place: &SegmentPlace, holder: &Holder, files: &[File]) -> PlaceStanding {
    judge(&marker(place), holder, || fits(place, files))
}

fn judge(found: &io::Result<Option<Marker>>, holder: &Holder, fits: impl Fn() -> bool) -> PlaceStanding {
    let store = holder.store.as_deref();
    match (found, holder.place.as_deref()) {
        (Err(error), _) => PlaceStanding::Unreadable(error.to_string()),
        (Ok(Some(found)), Some(named)) if found.place_id == named && found.may_be_of(store) => {
            PlaceStanding::Ours
        }
        // Its own marker, of a place that it named before it came here.
        (Ok(Some(found)), None) if store.is_some() && found.store_id.as_deref() == store && fits() => {
            PlaceStanding::Claimed
        }
        (Ok(Some(found)), _) => PlaceStanding::Foreign {
            store: found.store_id.clone(),
            is_former: found.store_id.is_some() && found.store_id == holder.former,
        },
        (Ok(None), Some(_)) => PlaceStanding::Unmarked,
        (Ok(None), None) if fits() => PlaceStanding::Claimed,
        (Ok(None), None) => PlaceStanding::Strange,
    }
}

/// Returns the marker of a place; what is no marker of ours is somebody else's, of whom it says nothing.
fn marker(place: &SegmentPlace) -> io::Result<Option<Marker>> {
    let size = match place.0.size(MARKER) {
        Ok(size) if size <= MARKER_BYTES => size,
        Ok(_) => return Ok(Some(Marker::default())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let bytes = place.0.read(MARKER, 0, usize::try_from(size).unwrap_or(0))?;
    Ok(Some(serde_json::from_slice(&bytes).unwrap_or_default()))
}

/// Marks a place, unless it is marked; says whether it did.
fn mark(place: &SegmentPlace, marker: &Marker) -> io::Result<bool> {
    place.0.create(MARKER, &serde_json::to_vec(marker)?)
}

/// Has the marker of an earlier build say of which store it is.
async fn complete(kernel: &Arc<Kernel>, place: &SegmentPlace, marker: Marker) -> Result<()> {
    let at = place.clone();
    let run = move || -> io::Result<()> { at.0.replace(MARKER, &serde_json::to_vec(&marker)?) };
    if let Err(error) = kernel.blocking(run).await? {
        // It is the place's as it was before.
        tracing::warn!(
            "the marker of the place of the history cannot be completed with the id of the store: {error}"
        );
    }
    Ok(())
}

/// Says whether a place without a marker can be the one of these segments: it holds one of them, or there are none.
fn fits(place: &SegmentPlace, files: &[File]) -> bool {
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
pub(super) async fn ours(kernel: &Arc<Kernel>) -> Result<Option<SegmentPlace>> {
    let Some(place) = kernel.extra::<SegmentPlace>() else {
        return Ok(None);
    };
    let standing = settle(kernel, place).await?;
    metrics::gauge!("provost_history_place_usable").set(f64::from(u8::from(standing == PlaceStanding::Ours)));
    Ok((standing == PlaceStanding::Ours).then(|| place.clone()))
}

async fn settle(kernel: &Arc<Kernel>, place: &SegmentPlace) -> Result<PlaceStanding> {
    let shared = kernel.clone();
    let (holder, claimed) = kernel
        .read_system(move |tx| Ok((holder(tx, &shared.keys)?, fact(tx, CLAIMED)?)))
        .await?;
    let at = place.clone();
    let found = kernel.blocking(move || marker(&at)).await?;
    if holder.place.is_some() {
        let standing = judge(&found, &holder, || false);
        if let (PlaceStanding::Ours, Ok(Some(found)), Some(_)) = (&standing, found, &holder.store)
            && found.store_id.is_none()
        {
            let store_id = holder.store;
            complete(kernel, place, Marker { store_id, ..found }).await?;
        }
        return Ok(standing);
    }
    let files = kernel.read_system(store::files).await?;
    if let Ok(Some(found)) = &found {
        // A server that claimed the place has marked it and went no further.
        let is_claimed = claimed
            .as_deref()
            .and_then(Claim::parse)
            .is_some_and(|claim| claim.id == found.place_id && found.may_be_of(holder.store.as_deref()));
        let standing = if is_claimed {
            PlaceStanding::Claimed
        } else {
            let (at, found, of) = (place.clone(), found.clone(), holder.clone());
            let judged = move || judge(&Ok(Some(found)), &of, || fits(&at, &files));
            kernel.blocking(judged).await?
        };
        if standing != PlaceStanding::Claimed {
            return Ok(standing);
        }
        name(kernel, found.place_id.clone()).await?;
        return Ok(PlaceStanding::Ours);
    }
    let (at, of) = (place.clone(), holder.clone());
    let standing = kernel
        .blocking(move || judge(&found, &of, || fits(&at, &files)))
        .await?;
    if standing != PlaceStanding::Claimed {
        return Ok(standing);
    }
    let Some(id) = claim(kernel).await? else {
        return Ok(PlaceStanding::Claimed);
    };
    let at = place.clone();
    let made = Marker {
        place_id: id.clone(),
        store_id: holder.store,
    };
    match kernel.blocking(move || mark(&at, &made)).await? {
        Ok(true) => {
            name(kernel, id).await?;
            Ok(PlaceStanding::Ours)
        }
        Ok(false) => Ok(PlaceStanding::Claimed),
        Err(error) => Ok(PlaceStanding::Unreadable(error.to_string())),
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
    let run = move |ctx: &mut OperationContext<'_>| {
        let now = ctx.now();
        let known = fact(&mut ctx.tx(), CLAIMED)?;
        let is_held = known
            .as_deref()
            .and_then(Claim::parse)
            .is_some_and(|claim| claim.since.plus_secs(CLAIM_SECS) > now && claim.since <= now);
        if is_held || fact(&mut ctx.tx(), NAMED)?.is_some() {
            return Ok(());
        }
        set_fact(ctx, CLAIMED, &format!("{wanted} {}", now.as_ms()))?;
        sink.store(true, Ordering::SeqCst);
        Ok(())
    };
    kernel.system(OrganizationId::installation(), None, run).await?;
    Ok(taken.load(Ordering::SeqCst).then(|| id.as_str().to_owned()))
}

/// Makes a place the store's.
async fn name(kernel: &Arc<Kernel>, id: String) -> Result<()> {
    let run = move |ctx: &mut OperationContext<'_>| set_fact(ctx, NAMED, &id);
    kernel.system(OrganizationId::installation(), None, run).await
}

/// Makes a place the store's whatever it was before, in its own entry of the audit log; the marker of another store is replaced.
///
/// Errors: those of the place, as a sentence, in the inner result.
pub async fn take(kernel: &Arc<Kernel>, place: &SegmentPlace) -> Result<io::Result<()>> {
    let id = PlaceId::mint(kernel.clock.now(), &mut kernel.rng());
    let shared = kernel.clone();
    let holder = kernel.read_system(move |tx| holder(tx, &shared.keys)).await?;
    let at = place.clone();
    let made = Marker {
        place_id: id.as_str().to_owned(),
        store_id: holder.store,
    };
    let marked = move || -> io::Result<()> {
        at.0.remove(MARKER)?;
        if mark(&at, &made)? {
            return Ok(());
        }
        Err(io::Error::other("another program marked it meanwhile"))
    };
    if let Err(error) = kernel.blocking(marked).await? {
        return Ok(Err(error));
    }
    let run = move |ctx: &mut OperationContext<'_>| {
        let before = fact(&mut ctx.tx(), NAMED)?;
        ctx.change("/historyPlace", before, id.as_str());
        drop_fact(ctx, FORMER)?;
        set_fact(ctx, NAMED, id.as_str())
    };
    kernel
        .system(OrganizationId::installation(), Some("history.adopted"), run)
        .await?;
    Ok(Ok(()))
}

/// Lets the store name no place: what it is restored into is another one than the place of the store that was backed up, whose id
/// is kept for what is said where its marker is found.
pub fn forget(ctx: &mut OperationContext<'_>, former: Option<&str>) -> Result<()> {
    drop_fact(ctx, NAMED)?;
    drop_fact(ctx, CLAIMED)?;
    match former {
        Some(former) => set_fact(ctx, FORMER, former),
        None => drop_fact(ctx, FORMER),
    }
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
pub struct LastReport(Mutex<Option<String>>);

/// Looks at the place and says what is wrong with it; at a start also whether it keeps what is written, and removes what nobody
/// names any more. Errors are of the store.
pub async fn watch(kernel: &Arc<Kernel>, is_start: bool) -> Result<()> {
    let Some(place) = kernel.extra::<SegmentPlace>() else {
        return Ok(());
    };
    let standing = settle(kernel, place).await?;
    let is_ours = standing == PlaceStanding::Ours;
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
    let said = kernel.own(LastReport::default);
    let mut last = said.0.lock().unwrap_or_else(PoisonError::into_inner);
    match &fault {
        Some(fault) => tracing::warn!("{fault}"),
        None if last.is_some() => tracing::info!("the place of the history is usable again"),
        None => {}
    }
    *last = fault;
}

/// Writes an object, reads it back and removes it.
fn probe(place: &SegmentPlace, name: &str) -> io::Result<()> {
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

    /// Proves HS-13.
    #[test]
    fn a_place_is_the_stores_by_its_marker_alone() {
        let marked = |id: &str, store: Option<&str>| {
            Ok(Some(Marker {
                place_id: id.to_owned(),
                store_id: store.map(str::to_owned),
            }))
        };
        let foreign = |store: Option<&str>, is_former: bool| PlaceStanding::Foreign {
            store: store.map(str::to_owned),
            is_former,
        };
        let (a, b) = (Some("store_a"), Some("store_b"));
        for (found, named, fits, expected) in [
            (marked("plc_a", a), Some("plc_a"), false, PlaceStanding::Ours),
            // Of an earlier build.
            (marked("plc_a", None), Some("plc_a"), false, PlaceStanding::Ours),
            (marked("plc_a", b), Some("plc_a"), true, foreign(b, true)),
            (
                marked("plc_a", Some("store_c")),
                Some("plc_a"),
                true,
                foreign(Some("store_c"), false),
            ),
            (marked("plc_b", None), Some("plc_a"), true, foreign(None, false)),
            (marked("plc_b", a), Some("plc_a"), true, foreign(a, false)),
            (marked("plc_b", None), None, true, foreign(None, false)),
            (marked("plc_b", b), None, true, foreign(b, true)),
            (marked("", None), Some("plc_a"), true, foreign(None, false)),
            (Ok(Some(Marker::default())), None, true, foreign(None, false)),
            // The store's own, which it named before it was moved.
            (marked("plc_b", a), None, true, PlaceStanding::Claimed),
            (marked("plc_b", a), None, false, foreign(a, false)),
            (Ok(None), Some("plc_a"), true, PlaceStanding::Unmarked),
            (Ok(None), None, true, PlaceStanding::Claimed),
            (Ok(None), None, false, PlaceStanding::Strange),
        ] {
            let holder = Holder {
                place: named.map(str::to_owned),
                store: a.map(str::to_owned),
                former: b.map(str::to_owned),
            };
            let standing = judge(&found, &holder, || fits);
            assert_eq!(standing, expected, "{found:?} {named:?}");
            let is_quiet = matches!(expected, PlaceStanding::Ours | PlaceStanding::Claimed);
            assert_eq!(standing.fault().is_none(), is_quiet, "{expected:?}");
        }
        let said = foreign(b, true).fault().unwrap();
        assert!(
            said.contains("store_b, from whose backup") && said.contains("--take-over"),
            "{said}"
        );
        // A store that does not know its id yet takes no marker that says one.
        let unknown = Holder::default();
        assert_eq!(judge(&marked("plc_b", a), &unknown, || true), foreign(a, false));
        assert_eq!(
            judge(&marked("plc_b", None), &unknown, || true),
            foreign(None, false)
        );
        let broken = Err(io::Error::other("no such host"));
        let said = judge(&broken, &Holder::default(), || true).fault().unwrap();
        assert!(said.contains("no such host"), "{said}");
    }

    #[test]
    fn a_claim_is_an_id_and_an_instant() {
        let claim = Claim::parse("plc_a 17").unwrap();
        assert_eq!((claim.id.as_str(), claim.since.as_ms()), ("plc_a", 17));
        assert!(Claim::parse("plc_a").is_none() && Claim::parse("plc_a x").is_none());
    }
}
