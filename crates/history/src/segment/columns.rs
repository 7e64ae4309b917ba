//! How a segment's columns are written as Parquet: types, encodings, pages.

use super::{LEVEL, ROW_GROUP_EVENTS};
use crate::batch::{Dictionary, Values};
use crate::error::{Error, Result};
use crate::schema::{AT, BEHAVIOUR, EVENT_ID, Kind, Schema};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::sync::Arc;

/// Begins a file with the columns of the schema.
pub(super) fn begin(schema: &Schema, has_behaviours: bool) -> Result<SerializedFileWriter<Vec<u8>>> {
    let mut fields = vec![
        field(
            EVENT_ID,
            Physical::BYTE_ARRAY,
            Some(LogicalType::String),
            Repetition::REQUIRED,
        )?,
        field(AT, Physical::INT64, Some(millis()), Repetition::REQUIRED)?,
    ];
    for column in schema.columns() {
        let (physical, logical) = match column.kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::TextSet | Kind::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
            Kind::Number => (Physical::DOUBLE, None),
            Kind::Boolean => (Physical::BOOLEAN, None),
            Kind::Instant => (Physical::INT64, Some(millis())),
        };
        fields.push(field(&column.name, physical, logical, Repetition::OPTIONAL)?);
    }
    if has_behaviours {
        fields.push(field(BEHAVIOUR, Physical::INT32, None, Repetition::REQUIRED)?);
    }
    let root = Type::group_type_builder("event").with_fields(fields.into_iter().map(Arc::new).collect());
    let root = root.build().map_err(failed)?;
    SerializedFileWriter::new(Vec::new(), Arc::new(root), Arc::new(properties()?)).map_err(failed)
}

fn properties() -> Result<WriterProperties> {
    let by_rows = |name: &str| ColumnPath::new(vec![name.to_owned()]);
    Ok(WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL).map_err(failed)?))
        .set_created_by("provost".into())
        .set_offset_index_disabled(true)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(None)
        // One dictionary for each column and row group, however large: the reader counts on it.
        .set_dictionary_page_size_limit(usize::MAX)
        .set_data_page_row_count_limit(ROW_GROUP_EVENTS)
        .set_column_dictionary_enabled(by_rows(EVENT_ID), false)
        .set_column_encoding(by_rows(EVENT_ID), Encoding::DELTA_BYTE_ARRAY)
        // Single ids are looked up: a page of them is unpacked for each.
        .set_column_data_page_row_count_limit(by_rows(EVENT_ID), 8_192)
        .set_column_dictionary_enabled(by_rows(AT), false)
        .set_column_encoding(by_rows(AT), Encoding::DELTA_BINARY_PACKED)
        .set_column_statistics_enabled(by_rows(AT), EnabledStatistics::Chunk)
        .build())
}

fn millis() -> LogicalType {
    LogicalType::timestamp(true, TimeUnit::MILLIS)
}

fn field(
    name: &str,
    physical: Physical,
    logical: Option<LogicalType>,
    repetition: Repetition,
) -> Result<Type> {
    let builder = Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition);
    builder.build().map_err(failed)
}

/// Writes the values of these codes; 0 is missing.
pub(super) fn write_column(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    codes: &[u32],
    dictionary: &Dictionary,
) -> Result<()> {
    let levels: Vec<i16> = codes.iter().map(|code| i16::from(*code != 0)).collect();
    let levels = Some(levels.as_slice());
    let present = codes.iter().filter_map(|code| (*code as usize).checked_sub(1));
    match &dictionary.values {
        Values::Texts(texts) => {
            let mut all: Vec<Option<ByteArray>> = vec![None; texts.len()];
            let one = |index: usize| ByteArray::from(Bytes::copy_from_slice(texts.get(index).as_bytes()));
            let values: Vec<ByteArray> = present
                .map(|index| all[index].get_or_insert_with(|| one(index)).clone())
                .collect();
            write::<ByteArrayType>(group, &values, levels)
        }
        Values::Numbers(all) => write::<DoubleType>(
            group,
            &present.map(|index| all[index]).collect::<Vec<_>>(),
            levels,
        ),
        Values::Instants(all) => write::<Int64Type>(
            group,
            &present.map(|index| all[index]).collect::<Vec<_>>(),
            levels,
        ),
        Values::Booleans => write::<BoolType>(
            group,
            &present.map(|index| index == 1).collect::<Vec<_>>(),
            levels,
        ),
    }
}

/// Writes a column: the values, and for each row whether it has one, unless all must.
pub(super) fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    let mut column = group
        .next_column()
        .map_err(failed)?
        .ok_or(Error::Corrupt("column"))?;
    column
        .typed::<T>()
        .write_batch(values, levels, None)
        .map_err(failed)?;
    column.close().map_err(failed)
}

pub(super) fn failed(cause: parquet::errors::ParquetError) -> Error {
    Error::Storage(std::io::Error::other(cause))
}
