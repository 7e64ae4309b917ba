# Takes names of files from a pipe, runs each in this one shell, and says behind it how it ended.
exec 9<typed/names </dev/null
stty cols 100 -onlcr 2>/dev/null </dev/tty
last=0
# Whether every command of a block succeeds, and not its last one alone.
set -E
note() { failed=${failed:-$1}; }
back() { return "$last"; }
answers() {
  local try
  for try in $(seq 300); do
    curl -sf -o /dev/null "$PROVOST_URL/readyz" && return 0
    sleep 0.05
  done
  echo "no server answers at $PROVOST_URL"
  return 1
}
while read -r how file <&9; do
  [ "$how" = end ] && break
  failed=
  case $how in
  block)
    trap 'note $?' ERR
    . "./$file"
    last=$?
    trap - ERR
    last=${failed:-$last}
    ;;
  one)
    back
    . "./$file"
    last=$?
    ;;
  background)
    . "./$file"
    answers
    last=$?
    # Its first words come when it answers, or a moment later.
    sleep 0.3
    ;;
  esac
  printf '\036%d\036' "$last"
done
