//! Takes the next chunk of an import's file.

use super::super::store::{imports, maintenance};
use super::lines::Chunk;
use super::model::{Format, ImportPath, ImportView, MAX_CHUNK_BYTES, RefusedLine};
use super::stage;
use crate::directory::fences;
use provost_kernel::auth::Role::Admin;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Content, Input, Meta, Method, Operation};
use provost_kernel::text::IntegerBetween;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct SendChunk;

/// Which chunk.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ChunkQuery {
    /// The number of the chunk; the first is 1.
    sequence: IntegerBetween<1, 1_000_000_000>,
}

/// The chunk, once it was read.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ChunkBody {
    #[serde(skip)]
    chunk: Option<Chunk>,
}

/// The import behind the chunk, and what was refused of the chunk.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ChunkReceipt {
    import: ImportView,
    /// Every line of this chunk that was refused.
    refused_lines: Vec<RefusedLine>,
}

impl Operation for SendChunk {
    const META: Meta = Meta::write(
        "sendHeadlessDirectoryImportChunk",
        Method::Post,
        "/directory/imports/{importId}/chunks",
        "directory",
    )
    .access("directory:write", &[Admin])
    .consumes(&["application/x-ndjson", "text/csv"], MAX_CHUNK_BYTES, 30)
    .command("directory", "send-chunk")
    .says(
        "Send the next chunk of an import",
        "At most 1 MiB, 500 lines of data, 5000 group names of users and 65536 bytes a line; a file is cut at line ends, \
         and every CSV chunk begins with the header. A JSONL line is {\"type\":\"group\",\"name\",\"description\"?} or \
         {\"type\":\"user\",\"loginName\",\"displayName\"?,\"email\"?,\"externalId\"?,\"status\"?,\"groups\"?}: what is absent \
         stays, null clears, groups are exactly the user's groups of the directory, each known or named on an earlier \
         line (in mode replace: named in the file). CSV has the columns type (user when there is none), loginName, name, \
         displayName, email, externalId, status, groups (separated by ;) and description, in any case; an empty cell clears, \
         status apart. A refused line changes \
         nothing and is answered with its number in the file. A chunk out of order is 409 with nextSequence. A \
         suspension through the API is not lifted, and what was deleted through the API since the import was opened does \
         not come back: such a line counts as superseded.",
    );
    type Path = ImportPath;
    type Query = ChunkQuery;
    type Body = ChunkBody;
    type Output = ChunkReceipt;

    fn read_content(content: Content) -> Result<ChunkBody> {
        let format = if content.media_type == Format::Csv.media_type() {
            Format::Csv
        } else {
            Format::Jsonl
        };
        let chunk = Some(Chunk::read(format, &content.bytes)?);
        Ok(ChunkBody { chunk })
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<ChunkReceipt> {
        let id = &input.path.import_id;
        ctx.target(&fences::IMPORT, id.as_str());
        let mut import = imports::get(ctx, id)?;
        import.must_be_open()?;
        let chunk = input.body.chunk.as_ref();
        let chunk = chunk.ok_or_else(|| Error::invalid("", "the chunk holds no line of data"))?;
        if chunk.format != import.format {
            let message = format!("this import takes {}", import.format.media_type());
            return Err(Error::new(Code::Conflict, message));
        }
        import.must_be_next(input.query.sequence.get())?;
        let known = import.counts.refused;
        let refused_lines = stage::chunk(ctx, &mut import, chunk)?;
        imports::refuse(ctx, id, known, &refused_lines)?;
        import.next_sequence += 1;
        import.touch(ctx.now());
        imports::save(ctx, &import)?;
        ctx.change(
            "/chunk",
            Value::Null,
            json!({
                "sequence": input.query.sequence.get(),
                "lines": chunk.lines.len(),
                "refused": refused_lines.len(),
            }),
        );
        // Whenever the import has doubled.
        if input.query.sequence.get().cast_unsigned().is_power_of_two() {
            maintenance::count_afresh(ctx)?;
        }
        Ok(ChunkReceipt {
            import: import.into(),
            refused_lines,
        })
    }
}
