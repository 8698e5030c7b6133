"""Stores a blob and reads it back with Microsoft's Python SDK.

    roundtrip.py CONNECTION_STRING            both
    roundtrip.py CONNECTION_STRING put
    roundtrip.py CONNECTION_STRING get
    roundtrip.py CONNECTION_STRING copy URL   lets the service copy from URL, and prints the blob
"""

import sys

from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobServiceClient

CONTENT = bytes(range(256)) * 1024


def main(connection, command="both", url=None):
    container = BlobServiceClient.from_connection_string(connection).get_container_client("kept")
    blob = container.get_blob_client("round/trip")
    if command in ("both", "put", "copy"):
        try:
            container.create_container()
        except ResourceExistsError:
            pass
    if command in ("both", "put"):
        blob.upload_blob(CONTENT, overwrite=True)
    if command in ("both", "get"):
        assert blob.download_blob().readall() == CONTENT
    if command == "copy":
        copy = container.get_blob_client("copied")
        copy.upload_blob_from_url(url)
        print(copy.download_blob().readall().decode())


main(*sys.argv[1:])
