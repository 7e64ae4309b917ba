//! Notes: the area that a newcomer would write first. It is no part of the product; the suite starts the product with it, so
//! that it stays true that an area is a folder and one line (`areas_beside.rs`).

mod operations;
pub mod samples;
mod store;

use provost_kernel::area::{Area, Check, Guide, Right, every};
use provost_kernel::auth::OrganizationId;
use provost_kernel::fence::Readers;
use provost_kernel::operation::Entry;
use provost_kernel::{Kernel, Result, migrations};
use std::sync::Arc;

/// The area.
pub static AREA: Area = Area {
    floor: 3,
    migrations: &migrations!["9001_notes"],
    operations: || {
        vec![
            Entry::of::<operations::ListNotes>(),
            Entry::of::<operations::CreateNote>(),
            Entry::of::<operations::GetNote>(),
            Entry::of::<operations::UpdateNote>(),
            Entry::of::<operations::DeleteNote>(),
        ]
    },
    fences: Some(&FENCES),
    statements: &[store::STATEMENTS],
    rights: &[Right::lasting("notes", "a note gives nobody anything")],
    timers: &[every(60, "notes", |kernel, _| Box::pin(sweep(kernel)))],
    check: Check::Find(|tx, _| store::broken_invariants(tx)),
    guides: &[Guide {
        name: "notes",
        title: "Notes",
        text: include_str!("guide.md"),
    }],
    ..Area::named("notes", "Short texts that people keep")
};

provost_kernel::event_data! {
    /// A note.
    OfNote {
        /// The note.
        note_id: store::NoteId,
    } like r#"{"noteId":"nte_01kaf9q2m4x7t8v3c5d6e0g1h2"}"#;
}

provost_kernel::fences! {
    acts Readers::Everybody, ["note.expired"];
    targets {
        /// A note.
        NOTE = "note" => Readers::Everybody;
    }
    events {
        /// The time of a note was over.
        EXPIRED: OfNote = "note.expired" => Readers::Everybody;
    }
}

/// Removes the notes whose time is over, if nobody doubts the clock, and tells of each.
async fn sweep(kernel: Arc<Kernel>) -> Result<()> {
    let Some(now) = kernel.undoubted().await? else {
        return Ok(());
    };
    let due = kernel
        .read_system(move |tx| store::due(tx, now.instant()))
        .await?;
    for (organization, id) in due {
        let organization = OrganizationId::from_store(organization);
        kernel
            .system(organization, Some("note.expired"), move |ctx| {
                ctx.target(&NOTE, id.as_str());
                store::delete(ctx, &id)?;
                ctx.emit(&EXPIRED, &OfNote { note_id: id.clone() });
                Ok(())
            })
            .await?;
    }
    Ok(())
}
