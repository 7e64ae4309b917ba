provost serve --bootstrap-token-file admin.token >server.log 2>&1 &
answers
export PROVOST_ORGANIZATION=default
export PROVOST_TOKEN=$(cat admin.token)
T=$PROVOST_TOKEN
H="Authorization: Bearer $T"
api=$PROVOST_URL/api/headless/v1/organizations/default
A=$api
