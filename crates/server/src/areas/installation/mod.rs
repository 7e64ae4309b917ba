//! What belongs to no area of the product: the kernel's tables, the store's own facts, and the work that keeps both in order.
//!
//! The mechanisms lie in the kernel and beside the areas (`store`, `closing`, `proofs`, `rotation`); here is what the list of
//! areas has to know of them.
//!
//! Absent on purpose: operations. Operators have commands (`provost store`, `provost keys`).

use crate::{background, closing, proofs, rotation};
use provost_areas_platform::ends;
use provost_areas_platform::identity;
use provost_areas_platform::removal;
use provost_areas_platform::store;
use provost_kernel::area::{Area, Check, Right, every, now_and_every};
use provost_kernel::{audit, db, doubt, idempotency, job, jobs, migrations, outbox, witness, write_behind};
use std::sync::Arc;

/// What every installation has.
pub static AREA: Area = Area {
    migrations: &migrations![
        "0001_kernel",
        "0024_right_proofs",
        "0025_key_readers",
        "0045_bounded_ends",
    ],
    statements: &[
        audit::STATEMENTS,
        doubt::STATEMENTS,
        db::touched::STATEMENTS,
        idempotency::STATEMENTS,
        job::STATEMENTS,
        jobs::STATEMENTS,
        jobs::WORKER_STATEMENTS,
        outbox::STATEMENTS,
        provost_kernel::proofs::STATEMENTS,
        witness::STATEMENTS,
        store::STATEMENTS,
        rotation::STATEMENTS,
        removal::STATEMENTS,
        closing::STATEMENTS,
        proofs::STATEMENTS,
        proofs::triggers::STATEMENTS,
        proofs::entries::STATEMENTS,
        identity::STATEMENTS,
    ],
    rights: &[Right::lasting("organizations", "are never taken away")],
    records: &[
        ("chain_heads", "each has a MAC"),
        (
            "idempotency_keys",
            "answers that were given; a secret in one opens with its caller's key alone",
        ),
        (
            "installation",
            "facts about the store, the note of a closed one among them",
        ),
        ("jobs", "work that is due; what it does is judged when it is done"),
        ("key_checks", "compared with the keys at each start"),
        ("key_readers", "which server has read which key"),
        (
            "right_proofs",
            "a MAC of each row that decides, and their sum stands with the heads",
        ),
    ],
    timers: &[
        now_and_every(60, "clock", |kernel, _| {
            Box::pin(async move { kernel.keep_time().await })
        }),
        every(60, "counts", |kernel, _| {
            Box::pin(async move {
                kernel.flush_counts();
                Ok(())
            })
        }),
        every(write_behind::USE_FLUSH_SECS, "uses", |kernel, _| {
            Box::pin(async move { kernel.flush_uses().await })
        }),
        every(3_600, "proofs", |kernel, _| {
            Box::pin(async move { proofs::round::verify(&kernel).await.map(drop) })
        }),
        now_and_every(3_600, "ends", |kernel, _| {
            Box::pin(async move { ends::trim(&kernel).await })
        }),
        every(300, "retention", |kernel, _| {
            Box::pin(async move { background::retain(&kernel).await })
        }),
    ],
    start: Some(|kernel, supervisor| {
        let (worked, stop) = (kernel.clone(), supervisor.token());
        let handlers = Arc::new(kernel.areas().jobs());
        supervisor.spawn("jobs", async move { jobs::serve(&worked, &handlers, stop).await });
        rotation::start(kernel, supervisor);
        Ok(())
    }),
    finish: Some(|kernel| {
        Box::pin(async move {
            kernel.flush_counts();
            if let Err(error) = kernel.flush_uses().await {
                tracing::warn!(cause = ?error.private(), "the last uses of some tokens were not written: {error}");
            }
        })
    }),
    check: Check::Nothing("the command reads the file, the keys, the chains and the proofs itself"),
    guides: &[
        provost_kernel::guide!("getting-started", "Getting started"),
        provost_kernel::guide!("api", "The HTTP API"),
    ],
    floor: 0,
    ..Area::named("installation", "The store, its keys and its upkeep")
};
