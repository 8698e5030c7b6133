#!/bin/sh
# Prints Azurite's startup lines for a port where nobody listens, like a server that no longer answers.
for service in Blob Queue Table; do
    echo "Azurite $service service is successfully listening at http://127.0.0.1:1"
done
exec sleep 60
