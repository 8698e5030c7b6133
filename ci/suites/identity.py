"""Signs in to smalt with Microsoft's azure-identity, unpatched, in every way that it supports.

    identity.py BLOB QUEUE TABLE CONTROL ACCOUNT CA

BLOB, QUEUE, TABLE and CONTROL are `host:port`; CA is the certificate to trust. Prints a line for
each failure, and `N passed, N failed`.
"""

import json
import os
import ssl
import sys
import time
import traceback
import urllib.request

from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.data.tables import TableServiceClient
from azure.identity import (
    ClientAssertionCredential,
    ClientSecretCredential,
    DefaultAzureCredential,
    EnvironmentCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)
from azure.storage.blob import BlobServiceClient, UserDelegationKey, generate_blob_sas
from azure.storage.blob import BlobClient, BlobSasPermissions
from azure.storage.queue import QueueServiceClient

BLOB, QUEUE, TABLE, CONTROL, ACCOUNT, CA = sys.argv[1:]
PORT = CONTROL.rsplit(":", 1)[1]
AUTHORITY = f"https://localhost:{PORT}"
TENANT = "dd0d0df1-06c3-436c-8034-4b9a153097ce"
READER = "11111111-1111-4111-8111-111111111111"
WRITER = "22222222-2222-4222-8222-222222222222"
ROUNDS = []

os.environ["REQUESTS_CA_BUNDLE"] = CA
os.environ["SSL_CERT_FILE"] = CA


def sign_in(test):
    ROUNDS.append(test)
    return test


def url(address):
    return f"https://localhost:{address.rsplit(':', 1)[1]}/{ACCOUNT}"


def blobs(credential):
    return BlobServiceClient(url(BLOB), credential=credential)


def writes_and_reads(credential, name):
    container = blobs(credential).create_container(name)
    container.upload_blob("a", b"hello")
    assert container.download_blob("a").readall() == b"hello"


def application(client, **more):
    return ClientSecretCredential(
        TENANT, client, "any", authority=AUTHORITY, disable_instance_discovery=True, **more
    )


def assign(assignments):
    body = json.dumps({"role_assignments": assignments}).encode()
    address = f"http://{CONTROL}/accounts/{ACCOUNT}"
    urllib.request.urlopen(urllib.request.Request(address, body, method="PATCH")).read()


def refused(call):
    try:
        call()
    except HttpResponseError as error:
        assert error.status_code == 403, error
        assert "AuthorizationPermissionMismatch" in str(error), error
    else:
        raise AssertionError("a refusal is expected")


@sign_in
def client_secret():
    writes_and_reads(application(WRITER), "client-secret")


@sign_in
def client_assertion():
    credential = ClientAssertionCredential(
        TENANT, WRITER, lambda: "e30.e30.", authority=AUTHORITY, disable_instance_discovery=True
    )
    writes_and_reads(credential, "client-assertion")


@sign_in
def workload_identity():
    path = os.path.join(os.path.dirname(CA), "assertion")
    with open(path, "w") as file:
        file.write("e30.e30.")
    credential = WorkloadIdentityCredential(
        tenant_id=TENANT,
        client_id=WRITER,
        token_file_path=path,
        authority=AUTHORITY,
        disable_instance_discovery=True,
    )
    writes_and_reads(credential, "workload-identity")


@sign_in
def environment():
    os.environ.update(
        AZURE_TENANT_ID=TENANT,
        AZURE_CLIENT_ID=WRITER,
        AZURE_CLIENT_SECRET="any",
        AZURE_AUTHORITY_HOST=AUTHORITY,
    )
    try:
        writes_and_reads(EnvironmentCredential(disable_instance_discovery=True), "environment")
    finally:
        for name in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET", "AUTHORITY_HOST"):
            del os.environ[f"AZURE_{name}"]


@sign_in
def app_service():
    os.environ.update(IDENTITY_ENDPOINT=f"http://{CONTROL}/identity/token", IDENTITY_HEADER="smalt")
    try:
        writes_and_reads(ManagedIdentityCredential(), "app-service")
        writes_and_reads(ManagedIdentityCredential(client_id=WRITER), "app-service-of-user")
        writes_and_reads(DefaultAzureCredential(), "by-default")
    finally:
        del os.environ["IDENTITY_ENDPOINT"], os.environ["IDENTITY_HEADER"]


@sign_in
def virtual_machine():
    os.environ["AZURE_POD_IDENTITY_AUTHORITY_HOST"] = f"http://{CONTROL}"
    try:
        writes_and_reads(ManagedIdentityCredential(), "virtual-machine")
    finally:
        del os.environ["AZURE_POD_IDENTITY_AUTHORITY_HOST"]


@sign_in
def roles():
    blobs(application(WRITER)).create_container("roles").upload_blob("a", b"hello")
    QueueServiceClient(url(QUEUE), credential=application(WRITER)).create_queue("jobs")
    reader = blobs(application(READER))
    try:
        assign(
            [
                {"principal": READER, "role": "Storage Blob Data Reader"},
                {"principal": READER, "role": "Storage Queue Data Message Sender"},
                {"principal": READER, "role": "Storage Table Data Contributor"},
            ]
        )
        container = reader.get_container_client("roles")
        assert container.download_blob("a").readall() == b"hello"
        assert [blob.name for blob in container.list_blobs()] == ["a"]
        refused(lambda: container.upload_blob("b", b""))
        refused(lambda: blobs(application(WRITER)).get_container_client("roles").delete_container())
        jobs = QueueServiceClient(url(QUEUE), credential=application(READER))
        jobs = jobs.get_queue_client("jobs")
        jobs.send_message("work")
        refused(jobs.receive_message)
        # The library takes localhost for Cosmos DB, which has another audience.
        tables = TableServiceClient(
            url(TABLE), credential=application(READER), audience="https://storage.azure.com"
        )
        rows = tables.create_table("rows")
        rows.upsert_entity({"PartitionKey": "a", "RowKey": "b"})
        assert rows.get_entity("a", "b")["RowKey"] == "b"
    finally:
        assign(None)


@sign_in
def user_delegation():
    from datetime import datetime, timedelta, timezone

    service = blobs(application(WRITER))
    service.create_container("delegated").upload_blob("a", b"hello")
    now = datetime.now(timezone.utc)
    key = service.get_user_delegation_key(now - timedelta(minutes=1), now + timedelta(hours=1))
    assert isinstance(key, UserDelegationKey) and key.signed_oid == WRITER
    signature = generate_blob_sas(
        ACCOUNT,
        "delegated",
        "a",
        user_delegation_key=key,
        permission=BlobSasPermissions(read=True),
        expiry=now + timedelta(minutes=30),
    )
    blob = BlobClient.from_blob_url(f"{url(BLOB)}/delegated/a?{signature}")
    assert blob.download_blob().readall() == b"hello"
    try:
        assign([{"principal": WRITER, "role": "Storage Blob Delegator"}])
        refused(lambda: blob.download_blob().readall())
    finally:
        assign(None)


@sign_in
def forged():
    class Forged:
        def get_token(self, *_, **__):
            from azure.core.credentials import AccessToken

            token = application(WRITER).get_token("https://storage.azure.com/.default").token
            head, claims, _ = token.split(".")
            return AccessToken(f"{head}.{claims}.{'A' * 86}", int(time.time()) + 3600)

    try:
        list(blobs(Forged()).list_containers())
    except ClientAuthenticationError as error:
        assert error.status_code == 401, error
    else:
        raise AssertionError("a forged signature is accepted")


failed = 0
for test in ROUNDS:
    try:
        test()
        print(f"{test.__name__}: passed", flush=True)
    except Exception:
        failed += 1
        print(f"FAILED {test.__name__}\n{traceback.format_exc()}", flush=True)
print(f"{len(ROUNDS) - failed} passed, {failed} failed")
