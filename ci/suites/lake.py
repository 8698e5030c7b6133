"""Python programs that people use with Data Lake Storage, against accounts with a hierarchical
namespace: clients of clients.py that also work there, and those that need one.

    lake.py BLOB QUEUE TABLE ACCOUNT KEY [NAME...]

Arguments and output are those of clients.py.
"""

import os
import sys
import uuid

import clients
from clients import ACCOUNT, CONNECTION, EMULATOR, KEY, URL, client, container

clients.ROUNDS[:] = [
    clients.arrow,
    clients.arrow_dataset,
    clients.delta_lake,
    clients.duckdb,
    clients.fsspec,
]


def file_system():
    """Creates a file system with the Data Lake library."""
    from azure.storage.filedatalake import DataLakeServiceClient

    lake = DataLakeServiceClient(URL, credential=KEY)
    return lake.create_file_system(f"lake-{uuid.uuid4().hex[:8]}")


def refused(code, call):
    """Checks that a call fails with this code."""
    from azure.core.exceptions import HttpResponseError

    try:
        call()
    except HttpResponseError as error:
        found = getattr(error, "error_code", None) or error.response.headers["x-ms-error-code"]
        assert str(getattr(found, "value", found)) == code, error
    else:
        raise AssertionError(f"{code} is expected")


@client
def files():
    from azure.core import MatchConditions

    system = file_system()
    big = os.urandom(9_000_000)
    file = system.create_directory("a/b").create_file("f", metadata={"team": "billing"})
    file.append_data(big[:4_000_000], offset=0)
    file.append_data(big[4_000_000:], offset=4_000_000)
    assert file.get_file_properties().size == 0
    file.flush_data(len(big))
    properties = file.get_file_properties()
    assert (properties.size, properties.metadata["team"]) == (len(big), "billing"), properties
    assert file.download_file(offset=5_000_000, length=100).readall() == big[5_000_000:5_000_100]
    file.upload_data(big + b"more", overwrite=True, chunk_size=4_000_000)
    assert file.download_file().readall() == big + b"more"
    refused("PathAlreadyExists", lambda: file.create_file(match_condition=MatchConditions.IfMissing))
    refused("PathNotFound", lambda: system.get_file_client("none").append_data(b"x", 0))
    assert system.get_directory_client("a").get_directory_properties().metadata["hdi_isfolder"]


@client
def renames():
    """A renamed directory keeps all that it holds, for both interfaces."""
    from azure.storage.blob import ContainerClient

    system = file_system()
    for name in ("x/1", "x/y/2", "x/a b%+ü/3"):
        system.get_file_client(name).upload_data(name.encode(), overwrite=True)
    system.create_directory("new")
    moved = system.get_directory_client("x").rename_directory(
        f"{system.file_system_name}/new/place"
    )
    assert moved.exists() and not system.get_directory_client("x").exists()
    paths = {path.name: path.is_directory for path in system.get_paths("new")}
    expected = {"new/place": True, "new/place/1": False, "new/place/y": True}
    expected |= {"new/place/y/2": False, "new/place/a b%+ü": True, "new/place/a b%+ü/3": False}
    assert paths == expected, paths
    blobs = ContainerClient.from_connection_string(CONNECTION, system.file_system_name)
    assert blobs.download_blob("new/place/a b%+ü/3").readall() == "x/a b%+ü/3".encode()
    pages = system.get_paths(recursive=True, max_results=2).by_page()
    assert [len(list(page)) for page in pages] == [2, 2, 2, 1]
    file = system.get_file_client("new/place/1")
    file.rename_file(f"{system.file_system_name}/new/other%2F1")
    assert system.get_file_client("new/other%2F1").exists()
    refused("SourcePathNotFound", lambda: file.rename_file(f"{system.file_system_name}/new/2"))
    system.get_directory_client("new").delete_directory()
    assert list(system.get_paths()) == []


@client
def access_control():
    system = file_system()
    folder = system.create_directory("d", umask="0000", permissions="rwxrwx---")
    folder.set_access_control(
        acl="user::rwx,group::r-x,other::---,default:user::rwx,default:user:bob:r-x,"
        "default:group::r-x,default:mask::r-x,default:other::---"
    )
    file = folder.create_file("e/f")
    found = file.get_access_control()
    assert "user:bob:r-x" in found["acl"], found
    assert found["owner"] == "$superuser"
    changed = folder.update_access_control_recursive("user:eve:r--", batch_size=1)
    counts = changed.counters
    assert (counts.directories_successful, counts.files_successful) == (2, 1), changed
    assert "user:eve:r--" in file.get_access_control()["acl"]
    folder.remove_access_control_recursive("user:eve")
    assert "eve" not in file.get_access_control()["acl"]
    refused("InvalidHeaderValue", lambda: folder.set_access_control(acl="nobody::rwx"))


@client
def leases():
    """A lease that one interface takes holds for the other."""
    from azure.storage.blob import BlobClient

    system = file_system()
    file = system.create_file("f")
    blob = BlobClient.from_connection_string(CONNECTION, system.file_system_name, "f")
    lease = file.acquire_lease()
    refused("LeaseIdMissing", lambda: file.append_data(b"one", 0, flush=True))
    refused("LeaseIdMissing", lambda: blob.upload_blob(b"two", overwrite=True))
    file.append_data(b"one", 0, lease=lease, flush=True)
    refused("LeaseIdMissing", file.delete_file)
    lease.release()
    blob.acquire_lease(15)
    refused("LeaseIdMissing", lambda: file.rename_file(f"{system.file_system_name}/g"))


@client
def signatures():
    from datetime import datetime, timedelta, timezone

    from azure.storage.filedatalake import (
        DataLakeDirectoryClient,
        DirectorySasPermissions,
        generate_directory_sas,
    )

    system = file_system()
    system.get_file_client("in/deep/f").upload_data(b"shared", overwrite=True)
    system.get_file_client("out/f").upload_data(b"private", overwrite=True)
    sas = generate_directory_sas(
        ACCOUNT,
        system.file_system_name,
        "in",
        KEY,
        permission=DirectorySasPermissions(read=True, list=True),
        expiry=datetime.now(timezone.utc) + timedelta(hours=1),
    )
    within = DataLakeDirectoryClient(URL, system.file_system_name, "in/deep", credential=sas)
    assert within.get_file_client("f").download_file().readall() == b"shared"
    refused("AuthorizationPermissionMismatch", lambda: within.create_file("g"))
    beyond = DataLakeDirectoryClient(URL, system.file_system_name, "out", credential=sas)
    refused("AuthenticationFailed", beyond.get_file_client("f").download_file)


@client
def adlfs():
    from adlfs import AzureBlobFileSystem

    lake = AzureBlobFileSystem(connection_string=CONNECTION)
    root = container("adlfs")
    lake.makedirs(f"{root}/dir/empty")
    with lake.open(f"{root}/dir/f", "wb") as file:
        file.write(os.urandom(6_000_000))
    assert lake.isdir(f"{root}/dir") and lake.size(f"{root}/dir/f") == 6_000_000
    lake.mv(f"{root}/dir/f", f"{root}/dir/g")
    assert lake.find(root) == [f"{root}/dir/g"], lake.find(root)
    lake.rm(f"{root}/dir", recursive=True)
    assert not lake.exists(f"{root}/dir")


@client
def delta_lake_by_abfss():
    import pyarrow
    from deltalake import DeltaTable, write_deltalake

    url = f"abfss://{container('delta')}@{ACCOUNT}.dfs.core.windows.net/tables/t"
    for start in range(0, 3000, 1000):
        rows = pyarrow.table({"n": list(range(start, start + 1000))})
        write_deltalake(url, rows, mode="append", storage_options=EMULATOR)
    table = DeltaTable(url, storage_options=EMULATOR)
    assert table.version() == 2 and table.to_pyarrow_table().num_rows == 3000
    table.delete("n < 500")
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert DeltaTable(url, storage_options=EMULATOR).to_pyarrow_table().num_rows == 2500


@client
def duckdb_by_abfss():
    """It uses production's host names; the server is its HTTP proxy."""
    import duckdb
    from duckdb_extensions import import_extension

    system = file_system()
    system.get_file_client("dir/a.csv").upload_data(b"a,b\n1,2\n3,4\n", overwrite=True)
    system.get_file_client("dir/sub/b.csv").upload_data(b"a,b\n5,6\n", overwrite=True)
    import_extension("azure")
    base = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    base.execute("LOAD azure")
    named = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY}"
    named += ";EndpointSuffix=core.windows.net"
    proxy = f"HTTP_PROXY 'http://{clients.BLOB}'"
    base.execute(f"CREATE SECRET (TYPE azure, CONNECTION_STRING '{named}', {proxy})")
    root = f"abfss://{system.file_system_name}"
    [(total,)] = base.execute(f"SELECT sum(a) FROM read_csv('{root}/dir/**')").fetchall()
    assert total == 9
    base.execute(f"COPY (SELECT range AS n FROM range(10000)) TO '{root}/out.parquet'")
    [(count,)] = base.execute(f"SELECT count(*) FROM '{root}/out.parquet'").fetchall()
    assert count == 10000


if __name__ == "__main__":
    sys.exit(clients.main())
