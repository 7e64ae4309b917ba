//! Text that was prepared, put into a response without being copied: the list of all tools is larger than everything
//! else that a request touches.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use provost_kernel::Error;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Puts bytes in the place of an empty member of a response. The member's name stands in quotes that no text of the
/// response can hold, so its first occurrence is the member.
///
/// Errors: `Internal` for a response without that place.
pub(crate) async fn splice(response: Response, place: &[u8], bytes: [Bytes; 2]) -> Result<Response, Error> {
    let (mut parts, body) = response.into_parts();
    let body = body.collect().await.map_err(Error::internal)?.to_bytes();
    let start = body.windows(place.len()).position(|window| window == place);
    let start = start.ok_or_else(|| Error::internal("a result without its place"))?;
    let (before, behind) = (body.slice(..start), body.slice(start + place.len()..));
    let [name, value] = bytes;
    parts.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(
        parts,
        Body::new(Pieces(vec![behind, value, name, before])),
    ))
}

/// A body of pieces, the first one last.
struct Pieces(Vec<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}
