#!/bin/sh
# Announces itself as Azurite does, where nobody listens: a server that answers no more.
for service in Blob Queue Table; do
    echo "Azurite $service service is successfully listening at http://127.0.0.1:1"
done
exec sleep 60
