//! `/state/snapshots` and `/state/reset`: named snapshots of the state.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::refusal::{Refusal, failed, no_such_method};
use crate::emulator::Emulator;
use crate::state::snapshots::START;
use crate::store::SnapshotError;

pub(super) const SNAPSHOT: &str = "/state/snapshots/";

type Act = fn(&Emulator, &str) -> Result<(), SnapshotError>;

pub(super) async fn serve(
    emulator: &Emulator,
    name: &str,
    method: &Method,
) -> Result<Value, Refusal> {
    let (act, done) = match *method {
        Method::PUT => (Emulator::save as Act, "saved"),
        Method::POST => (Emulator::load as Act, "loaded"),
        Method::DELETE => (Emulator::delete_snapshot as Act, "deleted"),
        _ => return Err(no_such_method()),
    };
    if name == START && *method != Method::POST {
        let what = format!("{START} is reserved for the state after the start; use another name");
        return Err(Refusal::new(StatusCode::BAD_REQUEST, what));
    }
    let of = name.to_owned();
    blocking(emulator, move |emulator| act(emulator, &of))
        .await?
        .map_err(refusal)?;
    Ok(json!({ "status": done, "name": name }))
}

pub(super) async fn reset(emulator: &Emulator) -> Result<Value, Refusal> {
    let reset = blocking(emulator, |emulator| emulator.load(START)).await?;
    reset.map_err(|error| match error {
        SnapshotError::NotFound(_) => Refusal::new(
            StatusCode::CONFLICT,
            "no snapshot of the state after the start: the store was not empty then; \
             save a snapshot (PUT /state/snapshots/NAME) and load that, or start with --seed",
        ),
        error => refusal(error),
    })?;
    Ok(json!({ "status": "reset" }))
}

/// Runs blocking work off the reactor.
pub(super) async fn blocking<T: Send + 'static>(
    emulator: &Emulator,
    work: impl FnOnce(&Emulator) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let emulator = emulator.clone();
    let done = tokio::task::spawn_blocking(move || work(&emulator)).await;
    done.map_err(|error| failed(&error))
}

fn refusal(error: SnapshotError) -> Refusal {
    let status = match &error {
        SnapshotError::Name(_) => StatusCode::BAD_REQUEST,
        SnapshotError::NotFound(_) => StatusCode::NOT_FOUND,
        SnapshotError::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Refusal::new(status, error.to_string())
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http_body_util::BodyExt as _;

    use super::super::answer;
    use crate::{Emulator, body};

    async fn ask(
        emulator: &Emulator,
        (method, path): (&str, &str),
        sent: impl Into<bytes::Bytes>,
    ) -> (u16, Vec<u8>) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "127.0.0.1:10003")
            .body(body::full(sent))
            .unwrap();
        let response = answer(emulator, None, request).await;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, bytes.to_vec())
    }

    async fn write(emulator: &Emulator, value: &'static [u8]) {
        let job = move |tx: &mut crate::store::Transaction<'_>, _: &_| {
            tx.put(vec![0x41], value);
            Ok(())
        };
        emulator.core().store.commit(job).await.unwrap();
    }

    fn read(emulator: &Emulator) -> Option<bytes::Bytes> {
        let store = &emulator.core().store;
        store.read(|view| view.get(&[0x41])).unwrap()
    }

    #[tokio::test]
    async fn snapshots_are_saved_loaded_listed_and_deleted() {
        let emulator = Emulator::builder().open().unwrap();
        write(&emulator, b"before").await;
        let one = "/state/snapshots/before";
        assert_eq!(ask(&emulator, ("PUT", one), "").await.0, 200);
        write(&emulator, b"after").await;
        assert_eq!(ask(&emulator, ("POST", one), "").await.0, 200);
        assert_eq!(read(&emulator).unwrap(), "before");
        let (_, list) = ask(&emulator, ("GET", "/state/snapshots"), "").await;
        assert!(String::from_utf8(list).unwrap().contains("\"before\""));
        assert_eq!(ask(&emulator, ("DELETE", one), "").await.0, 200);
        for (call, status) in [
            (("DELETE", one), 404),
            (("POST", one), 404),
            (("PUT", "/state/snapshots/.."), 400),
            (("PUT", "/state/snapshots/start"), 400),
            (("DELETE", "/state/snapshots/start"), 400),
            (("GET", one), 405),
            (("PUT", "/state/snapshots"), 405),
            (("POST", "/state/export"), 405),
            (("GET", "/state/import"), 405),
        ] {
            assert_eq!(ask(&emulator, call, "").await.0, status, "{call:?}");
        }
    }

    #[tokio::test]
    async fn reset_restores_the_start_or_explains_why_not() {
        let emulator = Emulator::builder().open().unwrap();
        let reset = ("POST", "/state/reset");
        assert_eq!(ask(&emulator, reset, "").await.0, 409);
        emulator.keep_start(false).unwrap();
        write(&emulator, b"after").await;
        assert_eq!(ask(&emulator, reset, "").await.0, 200);
        assert_eq!(read(&emulator), None);
    }

    #[tokio::test]
    async fn state_is_exported_and_imported_as_a_stream() {
        let emulator = Emulator::builder().open().unwrap();
        write(&emulator, b"out").await;
        let (status, stream) = ask(&emulator, ("GET", "/state/export"), "").await;
        assert_eq!(status, 200);
        write(&emulator, b"later").await;
        let import = ("POST", "/state/import");
        for refused in [&b""[..], b"no state", &stream[..stream.len() / 2]] {
            assert_eq!(ask(&emulator, import, refused.to_vec()).await.0, 400);
            assert_eq!(read(&emulator).unwrap(), "later");
        }
        assert_eq!(ask(&emulator, import, stream).await.0, 200);
        assert_eq!(read(&emulator).unwrap(), "out");
    }
}
