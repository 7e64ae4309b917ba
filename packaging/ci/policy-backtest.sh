#!/bin/sh
# What the GitHub Action and the GitLab template run: tests and checks the policies of a folder, replays the recorded events against what
# the change makes of them, and writes the comment for who reviews it into a file.
#
#   policy-backtest.sh DIR DAYS COMMENT [CONDITION …]
#
# Needs PROVOST_URL, PROVOST_ORGANIZATION and PROVOST_TOKEN: the token of a service account with the role operator and the scopes
# policies:read and policies:backtest, and policies:inspect where a policy that differs reads content. It writes no policy, and it should
# have no scope that could.
#
# Exit codes: 0 done; 10 a case came out otherwise, or a condition (such as 'block_to_allow>0') holds; others as the program says.
set -u
dir=$1 days=$2 comment=$3
shift 3
changes=$(mktemp)
trap 'rm -f "$changes"' EXIT

fail() {
    # The comment says what the pipeline says; what the program wrote stands in its log.
    printf '### Policies in this change\n\n%s\n' "$1" > "$comment"
    exit "$2"
}

provost policies lint "$dir" || fail 'A policy breaks its contract; the log of the pipeline names the file and the place.' $?
if [ -n "$(find "$dir" -name '*.cases.json')" ]; then
    provost policies test "$dir" || fail 'A case of a policy came out otherwise; the log of the pipeline names it.' $?
fi
provost policies diff -f "$dir" --changes "$changes" || fail 'The policies could not be compared with those of the server.' $?
if grep -q '"changes": \[\]' "$changes"; then
    printf '### Policies in this change\n\nNothing differs from the policies of the server.\n' > "$comment"
    exit 0
fi
# Each condition becomes one flag, also where it has blanks.
count=$#
while [ "$count" -gt 0 ]; do
    set -- "$@" "--fail-on=$1"
    shift
    count=$((count - 1))
done
provost backtests run --candidate "$changes" --days "$days" --format md --reason 'a change of policies in review' "$@" > "$comment"
code=$?
if [ ! -s "$comment" ]; then
    fail 'The backtest did not run; the log of the pipeline says why.' "$code"
fi
exit "$code"
