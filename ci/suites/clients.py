"""Python programs that people use with Azure Storage, each doing some typical work and
reading back what it wrote.

    clients.py BLOB QUEUE TABLE ACCOUNT KEY [NAME...]

BLOB, QUEUE and TABLE are `host:port`. Prints `FAILED name: why` for each round that fails, and
`N passed, N failed` at the end.
"""

import json
import os
import sys
import tempfile
import uuid

BLOB, QUEUE, TABLE, ACCOUNT, KEY, *CHOSEN = sys.argv[1:]
URL = f"http://{BLOB}/{ACCOUNT}"
CONNECTION = (
    f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
    f"BlobEndpoint={URL};QueueEndpoint=http://{QUEUE}/{ACCOUNT};"
    f"TableEndpoint=http://{TABLE}/{ACCOUNT};"
)
# Programs that use the object_store crate read this variable when they use an emulator.
os.environ["AZURITE_BLOB_STORAGE_URL"] = f"http://{BLOB}"
EMULATOR = {
    "account_name": ACCOUNT,
    "account_key": KEY,
    "use_emulator": "true",
    "allow_http": "true",
}
ROUNDS = []


def client(round_):
    ROUNDS.append(round_)
    return round_


def service():
    from azure.storage.blob import BlobServiceClient

    return BlobServiceClient.from_connection_string(CONNECTION)


def container(name):
    """Creates a container and returns its name."""
    name = f"{name}-{uuid.uuid4().hex[:8]}"
    service().create_container(name)
    return name


@client
def delta_lake():
    import pyarrow
    from deltalake import DeltaTable, write_deltalake

    url = f"az://{container('delta')}/table"
    for start in range(0, 3000, 1000):
        rows = pyarrow.table({"n": list(range(start, start + 1000)), "s": ["x"] * 1000})
        write_deltalake(url, rows, mode="append", storage_options=EMULATOR)
    table = DeltaTable(url, storage_options=EMULATOR)
    assert table.version() == 2
    table.delete("n < 500")
    table.optimize.compact()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert table.to_pyarrow_table().num_rows == 2500
    assert DeltaTable(url, storage_options=EMULATOR).version() >= 4


@client
def polars():
    import polars as pl

    name = container("polars")
    frame = pl.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    for form in ("parquet", "ipc", "csv"):
        url = f"az://{name}/dir/t.{form}"
        getattr(frame, f"write_{form}")(url, storage_options=EMULATOR)
        read = getattr(pl, f"scan_{form}")(url, storage_options=EMULATOR)
        assert read.select(pl.col("a").sum()).collect()["a"][0] == 6, form
    many = pl.scan_parquet(f"az://{name}/dir/*.parquet", storage_options=EMULATOR)
    assert many.collect().equals(frame)


@client
def obstore():
    import obstore
    from obstore.store import AzureStore

    store = AzureStore(
        container("obstore"),
        account_name=ACCOUNT,
        account_key=KEY,
        use_emulator=True,
        client_options={"allow_http": True},
    )
    big = os.urandom(20_000_000)
    obstore.put(store, "dir/big", big)
    obstore.put(store, "dir/sp ace+%ü.txt", b"small")
    obstore.copy(store, "dir/big", "copy")
    obstore.rename(store, "copy", "renamed")
    assert obstore.head(store, "renamed")["size"] == len(big)
    assert bytes(obstore.get(store, "renamed").bytes()) == big
    assert bytes(obstore.get_range(store, "dir/big", start=7, end=77)) == big[7:77]
    listed = sorted(one["path"] for page in obstore.list(store) for one in page)
    assert listed == ["dir/big", "dir/sp ace+%ü.txt", "renamed"], listed
    try:
        obstore.put(store, "renamed", b"", mode="create")
        raise AssertionError("an object was created twice")
    except obstore.exceptions.AlreadyExistsError:
        pass
    with obstore.open_writer(store, "streamed") as writer:
        writer.write(big)
    assert obstore.head(store, "streamed")["size"] == len(big)
    obstore.delete(store, ["renamed", "dir/big", "streamed"])
    assert len(obstore.list(store).collect()) == 1


@client
def opendal():
    import opendal

    operator = opendal.Operator(
        "azblob", container=container("opendal"), endpoint=URL, account_name=ACCOUNT, account_key=KEY
    )
    big = os.urandom(9_000_000)
    operator.write("dir/a b+ü.txt", b"hello")
    operator.write("dir/big", big)
    operator.create_dir("dir/sub/")
    operator.copy("dir/big", "dir/sub/big")
    assert bytes(operator.read("dir/sub/big")) == big
    assert operator.stat("dir/a b+ü.txt").content_length == 5
    listed = sorted(entry.path for entry in operator.list("dir/"))
    assert {"dir/a b+ü.txt", "dir/big", "dir/sub/"} <= set(listed), listed
    operator.remove_all("dir/")
    assert not [entry for entry in operator.scan("/") if entry.path != "/"]


def arrow_files():
    from pyarrow import fs

    return fs.AzureFileSystem(
        ACCOUNT,
        account_key=KEY,
        blob_storage_authority=BLOB,
        blob_storage_scheme="http",
        dfs_storage_authority=BLOB,
        dfs_storage_scheme="http",
    )


@client
def arrow():
    """The client first asks whether the account has a hierarchical namespace."""
    from pyarrow import fs

    files = arrow_files()
    name = container("arrow")
    big = os.urandom(12_000_000)
    with files.open_output_stream(f"{name}/dir/big", metadata={"Content-Type": "text/x"}) as out:
        out.write(big)
    files.create_dir(f"{name}/dir/empty/inner", recursive=True)
    files.copy_file(f"{name}/dir/big", f"{name}/dir/copy")
    with files.open_input_file(f"{name}/dir/copy") as file:
        assert file.read_at(100, 5_000_000) == big[5_000_000:5_000_100]
        assert file.readall() == big
        assert file.size() == len(big)
    infos = files.get_file_info(fs.FileSelector(name, recursive=True))
    assert {info.path for info in infos} == {
        f"{name}/{path}" for path in ("dir", "dir/big", "dir/copy", "dir/empty", "dir/empty/inner")
    }, infos
    [missing] = files.get_file_info([f"{name}/nothing"])
    assert missing.type == fs.FileType.NotFound
    files.delete_file(f"{name}/dir/copy")
    files.delete_dir(f"{name}/dir")
    assert files.get_file_info(fs.FileSelector(name, recursive=True)) == []
    files.create_dir(f"{name}x")
    files.delete_dir(f"{name}x")


@client
def arrow_dataset():
    import pyarrow
    from pyarrow import dataset

    files = arrow_files()
    name = container("dataset")
    table = pyarrow.table({"year": [2024] * 50 + [2025] * 50, "n": list(range(100))})
    dataset.write_dataset(
        table, f"{name}/set", format="parquet", partitioning=["year"], filesystem=files
    )
    read = dataset.dataset(f"{name}/set", partitioning=["year"], filesystem=files)
    assert read.count_rows(filter=dataset.field("year") == 2025) == 50


@client
def duckdb():
    import duckdb
    from duckdb_extensions import import_extension

    name = container("duckdb")
    lake = service().get_container_client(name)
    lake.upload_blob("dir/a.csv", b"a,b\n1,2\n3,4\n")
    lake.upload_blob("dir/b.csv", b"a,b\n5,6\n")
    import_extension("azure")
    base = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    base.execute("LOAD azure")
    base.execute(f"CREATE SECRET (TYPE azure, CONNECTION_STRING '{CONNECTION}')")
    [(total,)] = base.execute(f"SELECT sum(a) FROM 'az://{name}/dir/*.csv'").fetchall()
    assert total == 9
    base.execute(f"COPY (SELECT range AS n FROM range(10000)) TO 'az://{name}/out.csv'")
    [(count,)] = base.execute(f"SELECT count(*) FROM 'az://{name}/out.csv'").fetchall()
    assert count == 10000


@client
def fsspec():
    import pandas

    name = container("fsspec")
    options = {"connection_string": CONNECTION}
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    for form in ("csv", "parquet", "json"):
        url = f"abfs://{name}/dir/t.{form}"
        index = {"index": False} if form == "csv" else {}
        getattr(frame, f"to_{form}")(url, storage_options=options, **index)
        assert getattr(pandas, f"read_{form}")(url, storage_options=options).equals(frame), form
    import fsspec as registry

    files = registry.filesystem("abfs", **options)
    assert len(files.ls(f"{name}/dir")) == 3
    files.mv(f"{name}/dir/t.csv", f"{name}/dir/u.csv")
    assert files.exists(f"{name}/dir/u.csv") and not files.exists(f"{name}/dir/t.csv")
    files.rm(f"{name}/dir", recursive=True)
    assert files.find(name) == []


@client
def kombu():
    from kombu import Connection

    url = f"azurestoragequeues://{KEY}@http://{QUEUE}/{ACCOUNT}"
    with Connection(url) as connection:
        queue = connection.SimpleQueue(f"kombu-{uuid.uuid4().hex[:8]}")
        for number in range(5):
            queue.put({"number": number})
        got = []
        for _ in range(5):
            message = queue.get(timeout=10)
            got.append(message.payload["number"])
            message.ack()
        assert sorted(got) == list(range(5)), got
        assert queue.qsize() == 0
        queue.clear()


@client
def celery():
    """A broker of queues and a backend of blobs, with a worker in this process."""
    from celery import Celery
    from celery.contrib.testing.worker import start_worker

    suffix = uuid.uuid4().hex[:8]
    app = Celery(
        "rounds",
        broker=f"azurestoragequeues://{KEY}@http://{QUEUE}/{ACCOUNT}",
        backend=f"azureblockblob://{CONNECTION}",
    )
    app.conf.update(
        task_default_queue=f"celery-{suffix}",
        azureblockblob_container_name=f"celery-{suffix}",
        broker_transport_options={"polling_interval": 0.2, "queue_name_prefix": f"c{suffix}-"},
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
    )

    @app.task
    def add(a, b):
        return a + b

    with start_worker(app, perform_ping_check=False, shutdown_timeout=20):
        results = [add.delay(number, 1) for number in range(5)]
        assert [result.get(timeout=30) for result in results] == [1, 2, 3, 4, 5]


@client
def django_storages():
    from django.conf import settings

    if not settings.configured:
        settings.configure(USE_TZ=True)
    from django.core.files.base import ContentFile
    from storages.backends.azure_storage import AzureStorage

    store = AzureStorage(
        connection_string=CONNECTION,
        account_name=ACCOUNT,
        account_key=KEY,
        azure_container=container("django"),
        expiration_secs=600,
        overwrite_files=False,
    )
    name = store.save("dir/a b.txt", ContentFile(b"hello"))
    again = store.save("dir/a b.txt", ContentFile(b"again"))
    assert name != again and store.size(name) == 5 and store.exists(again)
    assert store.open(name).read() == b"hello"
    assert store.get_modified_time(name).year >= 2020
    assert sorted(store.listdir("")[1]) == sorted([name, again])
    import urllib.request

    with urllib.request.urlopen(store.url(name)) as answer:
        assert answer.read() == b"hello"
    store.delete(name)
    assert not store.exists(name)


@client
def mlflow():
    """MLflow's artifact store takes production's host from the URI, unless a client is passed."""
    from mlflow.store.artifact.azure_blob_artifact_repo import AzureBlobArtifactRepository

    name = container("mlflow")
    root = f"wasbs://{name}@{ACCOUNT}.blob.core.windows.net/run/artifacts"
    store = AzureBlobArtifactRepository(root, client=service())
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/model/data")
        for path, text in (("model/MLmodel", "flavors"), ("model/data/w.bin", "w" * 100_000)):
            with open(f"{folder}/{path}", "w", encoding="utf-8") as file:
                file.write(text)
        store.log_artifacts(f"{folder}/model", "model")
        listed = {(info.path, info.is_dir, info.file_size) for info in store.list_artifacts("model")}
        assert listed == {("model/MLmodel", False, 7), ("model/data", True, None)}, listed
        target = store.download_artifacts("model", folder)
        with open(f"{target}/data/w.bin", encoding="utf-8") as file:
            assert len(file.read()) == 100_000
    store.delete_artifacts("model")
    assert store.list_artifacts() == []


@client
def data_lake_says_flat():
    """The Data Lake library gets the errors of an account without a hierarchical namespace."""
    from azure.core.exceptions import HttpResponseError
    from azure.storage.filedatalake import DataLakeServiceClient

    lake = DataLakeServiceClient(URL, credential=KEY)
    system = lake.create_file_system(f"lake-{uuid.uuid4().hex[:8]}")
    folder = system.get_directory_client("dir")
    for ask in (
        folder.get_access_control,
        lambda: folder.set_access_control(permissions="0777"),
        folder.create_directory,
        lambda: system.create_file("file"),
        lambda: list(system.get_paths()),
        folder.delete_directory,
        lambda: folder.rename_directory(f"{system.file_system_name}/other"),
    ):
        try:
            ask()
        except HttpResponseError as error:
            code = getattr(error, "error_code", None) or error.response.headers["x-ms-error-code"]
            assert error.status_code == 400, error
            assert str(getattr(code, "value", code)) == "HierarchicalNamespaceNotEnabled", code
        else:
            raise AssertionError(f"{ask} is not refused")
    system.delete_file_system()


@client
def event_hubs_checkpoints():
    """Ownership of partitions: blobs with metadata and conditions, as Event Hubs consumers do."""
    from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore

    store = BlobCheckpointStore.from_connection_string(CONNECTION, container("hubs"))
    partition = {
        "fully_qualified_namespace": "space",
        "eventhub_name": "hub",
        "consumer_group": "$Default",
        "partition_id": "0",
        "owner_id": "one",
    }
    [owned] = store.claim_ownership([partition])
    [again] = store.claim_ownership([owned])
    assert again["etag"] != owned["etag"]
    assert store.claim_ownership([{**owned, "owner_id": "two"}]) == []
    store.update_checkpoint({**partition, "sequence_number": 7, "offset": "9"})
    [checkpoint] = store.list_checkpoints("space", "hub", "$Default")
    assert int(checkpoint["sequence_number"]) == 7
    [listed] = store.list_ownership("space", "hub", "$Default")
    assert listed["owner_id"] == "one"


@client
def cloudpathlib():
    from cloudpathlib import AzureBlobClient

    client_ = AzureBlobClient(connection_string=CONNECTION)
    root = client_.CloudPath(f"az://{container('cloudpath')}")
    (root / "dir" / "a.txt").write_text("hello")
    (root / "dir" / "a.txt").copy(root / "dir" / "b.txt")
    (root / "dir" / "b.txt").rename(root / "c.txt")
    assert (root / "c.txt").read_text() == "hello"
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*.txt")) == [
        "c.txt",
        "dir/a.txt",
    ]
    (root / "dir").rmtree()
    assert not (root / "dir" / "a.txt").exists()


def main():
    passed = failed = 0
    for one in ROUNDS:
        if CHOSEN and one.__name__ not in CHOSEN:
            continue
        try:
            one()
            passed += 1
        except BaseException as error:  # A Rust panic is not an `Exception`.
            if isinstance(error, KeyboardInterrupt):
                raise
            failed += 1
            text = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"FAILED {one.__name__}: {text[:600]}", flush=True)
            if os.environ.get("TRACE"):
                import traceback

                traceback.print_exc()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
