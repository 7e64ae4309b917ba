#!/usr/bin/env bash
# Measures the house, from its sources alone and in seconds: each line is a row of the table at the end of ARCHITECTURE.md.
# `docs/house.sh FOLDER` measures another work tree, such as one of an earlier commit.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
export LC_ALL=C

row() { printf '%-68s %s\n' "$1" "$2"; }

# The lines of a crate or a folder that are the product: no tests, and nothing behind a module of tests.
product_lines() {
  find "$@" -name '*.rs' -not -path '*/tests/*' -not -path '*/testing/*' -not -name '*tests.rs' -not -name 'testing.rs' -print0 |
    xargs -0 awk 'FNR == 1 { tests = 0; marked = 0 }
      marked && /^ *(pub(\([a-z]+\))? )?mod [a-z_]+ \{/ { tests = 1; lines-- }
      { marked = /^#\[cfg\(test\)\]$/ }
      !tests { lines++ }
      END { print lines + 0 }' | awk '{ sum += $1 } END { print sum + 0 }'
}

# Reads pairs "from to". Prints how many members the largest cycle has, and how many cycles there are.
cycles() {
  awk '$1 != $2 { name[$1]; name[$2]; way[$1, $2] = 1 }
    END {
      for (k in name) for (i in name) if (way[i, k]) for (j in name) if (way[k, j]) way[i, j] = 1
      for (i in name) {
        if (!way[i, i] || seen[i]) continue
        size = 0; count++
        for (j in name) if (way[i, j] && way[j, i]) { seen[j] = 1; size++ }
        if (size > largest) largest = size
      }
      print largest + 0, "in the largest of", count + 0
    }'
}

# The folders of the areas: those whose module holds an `AREA`.
areas=$({ grep -rlE '^pub (static|const) AREA: Area' crates/*/src --include=mod.rs || true; } | xargs -r -n1 dirname | sort)
# Before areas were values, the list of modules was the list of areas.
[ -n "$areas" ] || areas=$(ls -d crates/server/src/areas/*/ | sed 's|/$||')

# Code outside of areas, commands and configuration that names an area behind `areas::` or `provost_areas_…::`; the list of all
# areas is no such code.
composition=$(find crates/server/src -name '*.rs' -not -name '*tests.rs' -not -path '*/commands/*' -not -path '*/config/*' -not -path '*/areas/mod.rs' |
  grep -vF "$(sed 's|$|/|' <<<"$areas")")
row 'areas that the composition names by hand, beside the list of areas' "$(for area in $areas; do
  awk -v area="$(basename "$area")" 'BEGIN { RS = ";" }
    $0 ~ "areas(_[a-z]+)?::(\\{([^}]*[ ,{])?)?" area "([^a-z_]|$)" { found = 1 }
    END { if (found) print area }' $composition
done | wc -l)"

graph=crates/server/tests/it/golden/areas.txt
if [ -f "$graph" ]; then
  row 'arrows between areas that run up' "$(tail -n +2 "$graph" | grep -o '\^' | wc -l)"
  row 'areas in cycles' "$(tail -n +2 "$graph" | tr -d '^' | awk '{ for (i = 4; i <= NF; i++) print $2, $i }' | cycles)"
fi

row 'lines of product code' "$(product_lines $(ls -d crates/*/src | grep -v xtask))"
row 'lines of the largest crate' "$(for crate in crates/*/src; do
  case $crate in *xtask*) ;; *) echo "$(product_lines "$crate") $(basename "$(dirname "$crate")")" ;; esac
done | sort -rn | head -n 1)"
row 'lines of xtask' "$(product_lines crates/xtask/src)"

row 'modules of the kernel in cycles' "$(for file in $(find crates/kernel/src -name '*.rs' -not -path '*/tests/*' -not -path '*/schedules/*' -not -name '*tests.rs' -not -name 'testing.rs' -not -name lib.rs); do
  from=${file#crates/kernel/src/} from=${from%%/*} from=${from%.rs}
  awk '/^#\[cfg\(test\)\]$/ { exit } !/^ *\/\// { print }' "$file" | grep -oE 'crate::[a-z_0-9]+' | sed "s/^crate::/$from /"
done | sort -u | cycles)"

notes=crates/server/tests/it/notes
[ -d $notes ] && row 'lines of an area of 5 operations, 1 table, 1 event, 1 timer' "$(find $notes -type f | xargs cat | wc -l)"

row 'lines of SQL over 300 characters' "$(grep -rhE '"(SELECT|INSERT|UPDATE|DELETE|WITH) ' crates/*/src --include='*.rs' | awk 'length > 300' | wc -l)"
row 'columns that are read by their number' "$(grep -rhoE '\b[a-z]*row\.[a-z_]+\([0-9]+\)' crates/*/src --include='*.rs' | wc -l)"

# Numbers of decisions that are cited, and those that docs/decisions.md does not define.
cited=$(grep -rhoE '\bD[0-9]{1,2}\.[0-9]{1,2}\b' crates --include='*.rs' | sort -u)
unknown=$(for number in $cited; do
  anchor=d${number#D}
  grep -q "id=\"${anchor/./-}\"" docs/decisions.md 2>/dev/null || echo "$number"
done | wc -l)
row 'decision numbers that nobody can look up, of those that are cited' "$unknown of $(wc -l <<<"$cited")"
