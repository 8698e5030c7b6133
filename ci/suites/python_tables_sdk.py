"""Uses the Table service with Microsoft's Python SDK, as a new user would.

    python python_tables_sdk.py URL ACCOUNT KEY

Every function is a test with a table of its own; the last line has the counts.
"""

import asyncio
import datetime
import sys
import traceback
import uuid

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableClient,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    TableSasPermissions,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_table_sas,
)
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient

URL, ACCOUNT, KEY = sys.argv[1:]
CREDENTIAL = AzureNamedKeyCredential(ACCOUNT, KEY)
SERVICE = TableServiceClient(URL, credential=CREDENTIAL)
HOUR = datetime.timedelta(hours=1)


def in_an_hour():
    return datetime.datetime.now(datetime.timezone.utc) + HOUR


def code_of(error):
    """Returns the error's code. The SDK parses the code of some errors only."""
    named = getattr(error, "error_code", None)
    return named or error.response.json()["odata.error"]["code"]


def refused(code, call, *args, **kwargs):
    """Expects the call to fail with this code."""
    try:
        result = call(*args, **kwargs)
        if hasattr(result, "__next__"):
            next(result, None)
    except HttpResponseError as error:
        assert code == code_of(error), f"{code}: {error}"
        return
    raise AssertionError(f"did not fail with {code}")


def blog(row, **more):
    return {"PartitionKey": "cats", "RowKey": row, **more}


def tables(table):
    try:
        SERVICE.create_table(table.table_name)
        raise AssertionError("made twice")
    except ResourceExistsError as error:
        assert error.error_code == "TableAlreadyExists", error
    named = f"TableName eq '{table.table_name}'"
    assert [t.name for t in SERVICE.query_tables(named)] == [table.table_name]
    assert table.table_name in [t.name for t in SERVICE.list_tables(results_per_page=2)]
    try:
        SERVICE.create_table("a-b")
        raise AssertionError("no name of a table")
    except ValueError as error:
        # The SDK's own message for the service's error.
        assert "alphanumeric" in str(error), error


def round_trip(table):
    stored = blog(
        "1",
        text="naïve \"quotes\" <&> 😀",
        count=7,
        big=EntityProperty(2**53 + 1, EdmType.INT64),
        ratio=0.1,
        done=True,
        when=datetime.datetime(2026, 11, 21, 10, 0, 0, 123456, datetime.timezone.utc),
        id=uuid.UUID("2c4d7f70-8d0f-4a3a-9d80-6e2c5d2b0f11"),
        raw=b"\x00\xff",
        missing=None,
    )
    made = table.create_entity(stored)
    got = table.get_entity("cats", "1")
    assert got.metadata["etag"] == made["etag"], (got.metadata, made)
    assert "missing" not in got
    for name in ["text", "count", "ratio", "done", "id", "raw"]:
        assert got[name] == stored[name], (name, got[name])
    assert got["big"].value == 2**53 + 1, got["big"]
    assert got["when"] == stored["when"], got["when"]
    assert table.get_entity("cats", "1", select=["count"]) == {"count": 7}


def odd_keys(table):
    for key in ["", " ", "it's", "ä😀", "100%", "a+b&c=d", "(x,y)"]:
        table.create_entity({"PartitionKey": key, "RowKey": key, "n": 1})
        assert table.get_entity(key, key)["n"] == 1, key
        table.delete_entity(key, key)
    refused("OutOfRangeInput", table.create_entity, blog("a\x01b"))


def writes(table):
    table.create_entity(blog("1", a=1, b=2))
    refused("EntityAlreadyExists", table.create_entity, blog("1"))
    table.update_entity(blog("1", b=3), mode=UpdateMode.MERGE)
    assert table.get_entity("cats", "1")["a"] == 1
    table.update_entity(blog("1", c=4), mode=UpdateMode.REPLACE)
    assert "a" not in table.get_entity("cats", "1")
    table.upsert_entity(blog("2", a=1), mode=UpdateMode.MERGE)
    table.upsert_entity(blog("2", b=2), mode=UpdateMode.MERGE)
    assert {"a": 1, "b": 2}.items() <= table.get_entity("cats", "2").items()
    table.upsert_entity(blog("2", c=3), mode=UpdateMode.REPLACE)
    assert "a" not in table.get_entity("cats", "2")
    refused("ResourceNotFound", table.update_entity, blog("9", a=1))


def conditions(table):
    etag = table.create_entity(blog("1", n=1))["etag"]
    only = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
    table.update_entity(blog("1", n=2), mode=UpdateMode.REPLACE, **only)
    refused("UpdateConditionNotSatisfied", table.update_entity, blog("1", n=3), **only)
    refused("UpdateConditionNotSatisfied", table.delete_entity, "cats", "1", **only)
    table.delete_entity("cats", "1")
    table.delete_entity("cats", "1")
    try:
        table.get_entity("cats", "1")
        raise AssertionError("still there")
    except ResourceNotFoundError as error:
        assert error.error_code == "ResourceNotFound", error


def queries(table):
    for n in range(50):
        table.create_entity(blog(f"{n:03}", n=n, even=n % 2 == 0, half=n / 2))
    asked = table.query_entities("PartitionKey eq @p and n ge @n", parameters={"p": "cats", "n": 45})
    assert [e["n"] for e in asked] == [45, 46, 47, 48, 49]
    both = table.query_entities("(even eq true and n lt 6) or not (n le 47)", select=["n"])
    assert [e["n"] for e in both] == [0, 2, 4, 48, 49]
    prefix = table.query_entities("RowKey ge '01' and RowKey lt '02'")
    assert len(list(prefix)) == 10
    pages = table.list_entities(results_per_page=20).by_page()
    assert [len(list(page)) for page in pages] == [20, 20, 10]
    refused("InvalidInput", table.query_entities, "n ge")


def thousands(table):
    for begin in range(0, 1100, 100):
        rows = range(begin, begin + 100)
        table.submit_transaction([("create", blog(f"{n:05}", n=n)) for n in rows])
    pages = [list(page) for page in table.list_entities().by_page()]
    assert [len(page) for page in pages] == [1000, 100]
    assert [e["n"] for page in pages for e in page] == list(range(1100))


def transactions(table):
    table.create_entity(blog("old", n=1))
    done = table.submit_transaction(
        [
            ("create", blog("a", n=1)),
            ("upsert", blog("b", n=2)),
            ("update", blog("old", m=2), {"mode": "merge"}),
        ]
    )
    assert len(done) == 3 and all("etag" in one for one in done), done
    try:
        table.submit_transaction([("delete", blog("b")), ("create", blog("a"))])
        raise AssertionError("the second cannot be done")
    except TableTransactionError as error:
        assert (error.error_code, error.index) == ("EntityAlreadyExists", 1), error
    assert table.get_entity("cats", "b")["n"] == 2
    table.submit_transaction([("delete", blog("a")), ("delete", blog("b"))])
    assert len(list(table.list_entities())) == 1


def policies_and_signatures(table):
    table.create_entity(blog("1", n=1))
    table.create_entity({"PartitionKey": "dogs", "RowKey": "1"})
    policy = TableAccessPolicy(expiry=in_an_hour(), permission=TableSasPermissions(read=True))
    table.set_table_access_policy({"reader": policy})
    assert table.get_table_access_policy()["reader"].permission == "r"
    name = table.table_name
    for options in [
        {"policy_id": "reader"},
        {"permission": TableSasPermissions(read=True), "expiry": in_an_hour()},
    ]:
        token = generate_table_sas(CREDENTIAL, name, **options)
        guest = TableClient(URL, name, credential=AzureSasCredential(token))
        assert guest.get_entity("cats", "1")["n"] == 1
        refused("AuthorizationPermissionMismatch", guest.create_entity, blog("2"))
    bounded = {"start_pk": "cats", "end_pk": "cats", "permission": "r", "expiry": in_an_hour()}
    token = generate_table_sas(CREDENTIAL, name, **bounded)
    guest = TableClient(URL, name, credential=AzureSasCredential(token))
    assert [e["PartitionKey"] for e in guest.list_entities()] == ["cats"]


def service(_table):
    retention = TableRetentionPolicy(enabled=True, days=5)
    SERVICE.set_service_properties(
        analytics_logging=TableAnalyticsLogging(write=True, retention_policy=retention),
        hour_metrics=TableMetrics(enabled=True, include_apis=True, retention_policy=retention),
        cors=[TableCorsRule(["https://example.com"], ["GET"], max_age_in_seconds=60)],
    )
    properties = SERVICE.get_service_properties()
    assert properties["analytics_logging"].write
    assert properties["hour_metrics"].retention_policy.days == 5
    assert properties["cors"][0].allowed_origins == ["https://example.com"]
    replication = SERVICE.get_service_stats()["geo_replication"]
    assert replication["status"] == "live"
    assert replication["last_sync_time"] is not None


def asynchronous(table):
    async def work():
        async with AsyncTableServiceClient(URL, credential=CREDENTIAL) as service:
            mine = service.get_table_client(table.table_name)
            await asyncio.gather(*(mine.create_entity(blog(str(n), n=n)) for n in range(20)))
            return [entity["n"] async for entity in mine.query_entities("n lt 5")]

    assert sorted(asyncio.run(work())) == [0, 1, 2, 3, 4]


TESTS = [
    tables, round_trip, odd_keys, writes, conditions, queries, thousands, transactions,
    policies_and_signatures, service, asynchronous,
]


def main():
    failed = 0
    for test in TESTS:
        table = SERVICE.create_table(f"t{uuid.uuid4().hex}")
        try:
            test(table)
        except Exception:
            failed += 1
            print(f"FAILED {test.__name__}")
            traceback.print_exc(file=sys.stdout)
        finally:
            SERVICE.delete_table(table.table_name)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
