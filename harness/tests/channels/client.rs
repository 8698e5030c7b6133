//! The example's client of the Table service: its retries, the answers that it rejects, and its
//! other credential.

use std::sync::Arc;
use std::time::Duration;

use smalt_harness::testing::TestAccount;
use smalt_protocol::connection_string::{EMULATOR_ACCOUNT_KEY, EMULATOR_ACCOUNT_NAME};
use smalt_protocol::signing::sas::build::AccountSas;
use smalt_protocol::{AccountKey, ApiVersion};
use smalt_sleeve::TokioClock;

use crate::channels::app::audit::{self, Faults};
use crate::channels::app::setup;
use crate::channels::app::site::{BLOGS, Site};
use crate::channels::app::tables::{Change, TableError};
use crate::channels::app::worker::delete_channel;
use crate::channels::{
    MENDED, ONE, Outcome, SEVERAL, VISIBILITY, faults, prepared, site, work_off,
};

/// The operation that reads one entity.
const GET: &str = "Table_QueryEntityWithPartitionAndRowKey";

#[tokio::test(start_paused = true)]
async fn it_retries_and_gives_up() -> Outcome {
    let (account, own) = prepared(&ONE).await?;
    let channel = ONE.channels().remove(0);
    account.fault(GET).times(2).server_busy(None);
    account.fault(GET).nth(3).times(2).connection_reset();
    assert!(own.may_write(&channel).await?);
    account.assert_faults_fired();
    account.fault(GET).times(5).internal_error();
    let given_up = own.may_write(&channel).await;
    assert!(matches!(given_up, Err(TableError::Unavailable(_))));
    account.assert_faults_fired();
    Ok(())
}

/// A missing table is an error, and not the same as a deleted channel.
#[tokio::test(start_paused = true)]
async fn a_missing_table_is_an_error() -> Outcome {
    let account = TestAccount::open()?;
    let own = site(&account, account.transport(), 1);
    let deleted = delete_channel(&own, "never made", MENDED).await;
    let code = "TableNotFound";
    assert!(
        matches!(&deleted, Err(TableError::Refused { status: 404, code: told }) if told == code),
        "{deleted:?}"
    );
    Ok(())
}

/// A rejected transaction returns the reason, and none of it is applied.
#[tokio::test(start_paused = true)]
async fn a_rejected_transaction_applies_nothing() -> Outcome {
    let (_, own) = prepared(&ONE).await?;
    let before = audit::read(&own).await?.blogs["channel-000"].clone();
    let there = before.first().ok_or("no blog")?;
    let delete = |row: &str| Change::Delete {
        partition: "channel-000".to_owned(),
        row: row.to_owned(),
    };
    let changes = [delete(there), delete("never was")];
    let refused = own.tables.transact(BLOGS, &changes).await;
    assert!(matches!(refused, Err(TableError::Missing)), "{refused:?}");
    assert_eq!(audit::read(&own).await?.blogs["channel-000"], before);
    Ok(())
}

/// All roles work with an account SAS in place of the key.
#[tokio::test(start_paused = true)]
async fn a_sas_works_in_place_of_the_key() -> Outcome {
    let account = TestAccount::open()?;
    let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY).ok_or("key")?;
    let sas = AccountSas {
        version: ApiVersion::V2021_12_02,
        account: EMULATOR_ACCOUNT_NAME,
        services: "qt",
        resource_types: "sco",
        permissions: "rwdlacup",
        start: None,
        expiry: account.now().plus(Duration::from_secs(3600)),
        ip: "",
        protocol: "https,http",
        encryption_scope: "",
    };
    let connection = format!(
        "QueueEndpoint=http://127.0.0.1:10001/{EMULATOR_ACCOUNT_NAME};\
         TableEndpoint=http://127.0.0.1:10002/{EMULATOR_ACCOUNT_NAME};\
         SharedAccessSignature={}",
        sas.sign(key.as_bytes())
    );
    let clock = Arc::new(TokioClock::starting_at(account.now()));
    let own = Site::open(&connection, account.transport(), clock, VISIBILITY, 1)?;
    setup::setup(&own, &SEVERAL).await?;
    setup::request(&own, &SEVERAL).await?;
    work_off(&account, &own, MENDED).await?;
    assert_eq!(faults(&own, &SEVERAL).await?, Faults::default());
    Ok(())
}
