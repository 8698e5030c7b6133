//! Tests the bytes of page blobs: written pages, zeros elsewhere, never in memory as a whole.

use smalt_protocol::limits::PAGE_BYTES;

use super::*;

/// Writes single pages, each filled with one byte; `pages` has their numbers and bytes.
async fn written(store: &Store, pages: Vec<(u64, u8)>) -> BlobContent {
    commit(store, move |tx| {
        let mut content = BlobContent::Empty;
        for (page, byte) in pages {
            let staged = Staged::inline(vec![byte; PAGE_BYTES as usize].into())?;
            let payload = store::adopt(tx, staged)?;
            let start = page * PAGE_BYTES;
            content = pages::write(tx, content, start..start + PAGE_BYTES, payload)?;
        }
        Ok(content)
    })
    .await
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn range_of_pages_has_written_bytes_and_zeros(
        writes in prop::collection::vec((0_u64..60, 1_u8..), 0..40),
        from in 0_usize..60 * 512,
        length in 0_usize..60 * 512,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut whole = vec![0_u8; 60 * 512];
            for (page, byte) in &writes {
                let start = *page as usize * 512;
                whole[start..start + 512].fill(*byte);
            }
            let store = store();
            let content = written(&store, writes).await;
            let to = (from + length).min(whole.len());
            let located = find(&store, content, from as u64..to as u64);
            assert_eq!(located.length(), (to - from) as u64);
            assert_eq!(located.read_all(&store).unwrap(), whole[from..to]);
            assert_eq!(received(located.into_content(&store)).await, whole[from..to]);
        });
    }
}

/// More scattered pages than are located at once.
const SCATTERED: u64 = 5_000;

#[tokio::test]
async fn many_scattered_pages_are_located_in_steps() {
    let store = store();
    let content = written(&store, (0..SCATTERED).map(|page| (page * 2, 7)).collect()).await;
    let length = SCATTERED * 2 * PAGE_BYTES;
    let read = received(find(&store, content, 0..length).into_content(&store)).await;
    let pages: Vec<_> = read.chunks(PAGE_BYTES as usize).collect();
    assert_eq!(pages.len() as u64, SCATTERED * 2);
    for pair in pages.chunks(2) {
        assert_eq!(pair, [[7; 512], [0; 512]]);
    }
    // A blob that changes while it is sent breaks the response off: it never mixes two states.
    let Content::Stream { body, .. } = find(&store, content, 0..length).into_content(&store) else {
        panic!("it is sent in one piece");
    };
    let tick = 1;
    commit(&store, move |tx| {
        pages::clear(tx, content, 0..PAGE_BYTES, tick)
    })
    .await;
    assert!(body.collect().await.is_err());
}

#[tokio::test]
async fn zeros_are_sent_without_buffering() {
    let store = store();
    let length = 64 * 1024 * 1024 * 1024;
    let located = find(&store, BlobContent::Empty, 0..length);
    let Content::Stream {
        mut body,
        length: told,
    } = located.into_content(&store)
    else {
        panic!("it is sent in one piece");
    };
    assert_eq!(told, length);
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.len() <= 64 * 1024 && first.iter().all(|byte| *byte == 0));
}
