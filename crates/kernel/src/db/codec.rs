//! Values on their way to and from the drivers.

use super::param::Param;
use super::row::Value;
use bytes::BytesMut;
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::error::Error as StdError;

use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type};

impl rusqlite::ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Param::Null => ValueRef::Null,
            Param::Text(text) => ValueRef::Text(text.as_bytes()),
            Param::Int(int) => ValueRef::Integer(*int),
            Param::Bool(bool) => ValueRef::Integer((*bool).into()),
            Param::Bytes(bytes) => ValueRef::Blob(bytes),
            Param::Time(time) => ValueRef::Integer(time.as_ms()),
        }))
    }
}

/// PostgreSQL infers the type of a parameter from its place in the statement; the value adapts when that
/// loses nothing (`LIMIT ?1` is a BIGINT, `SUBSTR(x, ?1)` takes an INTEGER, a text may go to a JSONB).
impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Param::Null => return Ok(IsNull::Yes),
            Param::Text(text) if is_text(ty) => out.extend_from_slice(text.as_bytes()),
            Param::Bool(bool) if *ty == Type::BOOL => out.extend_from_slice(&[u8::from(*bool)]),
            Param::Bytes(bytes) if *ty == Type::BYTEA => out.extend_from_slice(bytes),
            Param::Int(int) if put_int(*int, ty, out)? => {}
            Param::Time(time) if put_int(time.as_ms(), ty, out)? => {}
            _ => {
                return Err(format!("a parameter {self:?} stands where PostgreSQL expects {ty}").into());
            }
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, ty: &Type) -> Format {
        match self {
            Param::Text(_) => Format::Text,
            Param::Int(_) | Param::Time(_) if matches!(*ty, Type::NUMERIC | Type::FLOAT8) => Format::Text,
            _ => Format::Binary,
        }
    }

    fn to_sql_checked(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        self.to_sql(ty, out)
    }
}

/// Writes an integer in the width that is expected; `false` when the place takes no integer.
fn put_int(int: i64, ty: &Type, out: &mut BytesMut) -> Result<bool, std::num::TryFromIntError> {
    match *ty {
        Type::INT8 => out.extend_from_slice(&int.to_be_bytes()),
        Type::INT4 => out.extend_from_slice(&i32::try_from(int)?.to_be_bytes()),
        Type::INT2 => out.extend_from_slice(&i16::try_from(int)?.to_be_bytes()),
        Type::NUMERIC | Type::FLOAT8 => out.extend_from_slice(int.to_string().as_bytes()),
        _ => return Ok(false),
    }
    Ok(true)
}

fn is_text(ty: &Type) -> bool {
    matches!(
        *ty,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN | Type::JSON | Type::JSONB
    )
}

/// The bytes of a PostgreSQL column in the binary format, whatever its type.
struct Raw<'a>(Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Raw(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Raw(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Returns a column of a PostgreSQL row; a type that the store does not use is foreign.
pub(super) fn value(row: &tokio_postgres::Row, index: usize) -> Value<'_> {
    let (Some(column), Ok(raw)) = (row.columns().get(index), row.try_get::<_, Raw<'_>>(index)) else {
        return Value::Foreign;
    };
    let Some(bytes) = raw.0 else {
        return Value::Null;
    };
    let text = |bytes| std::str::from_utf8(bytes).map_or(Value::Foreign, Value::Text);
    match (column.type_(), bytes) {
        (&Type::INT8, bytes) => bytes
            .try_into()
            .map_or(Value::Foreign, |b| Value::Int(i64::from_be_bytes(b))),
        (&Type::INT4, &[a, b, c, d]) => Value::Int(i32::from_be_bytes([a, b, c, d]).into()),
        (&Type::INT2, &[a, b]) => Value::Int(i16::from_be_bytes([a, b]).into()),
        (&Type::BOOL, &[byte]) => Value::Bool(byte != 0),
        (&Type::BYTEA, bytes) => Value::Bytes(bytes),
        // The binary form of JSONB is its version, 1, and then the text.
        (&Type::JSONB, [1, bytes @ ..]) => text(bytes),
        (ty, bytes) if is_text(ty) && *ty != Type::JSONB => text(bytes),
        _ => Value::Foreign,
    }
}
