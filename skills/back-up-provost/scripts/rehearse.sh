#!/bin/sh
# Restores a backup into a folder that is thrown away and checks what came of it.
# Usage: rehearse.sh BACKUP KEYS.AGE PASSPHRASE-FILE
set -eu

if [ "$#" -ne 3 ]; then
    echo "usage: $0 BACKUP KEYS.AGE PASSPHRASE-FILE" >&2
    exit 2
fi
backup=$1 keys=$2 passphrase=$3

# What points to the real installation must not reach the commands below.
unset PROVOST_CONFIG PROVOST_DATA_DIR PROVOST_DATABASE_URL PROVOST_DATABASE_URL_FILE PROVOST_KEYS_DIR

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

provost keys import "$keys" --keys-dir "$work/keys" --passphrase-file "$passphrase"
# Standard output has new admin tokens of the copy, which nobody needs and nobody should see.
provost store restore "$backup" --data-dir "$work/data" --keys-dir "$work/keys" >/dev/null
provost store check --data-dir "$work/data" --keys-dir "$work/keys"
provost audit verify --data-dir "$work/data" --keys-dir "$work/keys"
echo "the backup $backup can be restored"
