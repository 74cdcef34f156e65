#!/usr/bin/env bash
# Fails where an endpoint of your store gained a round trip. Copy this file, and the study beside it,
# into your store's repository, and call it in CI:
#
#     no-more-round-trips.sh SYSTEM OLD NEW
#     no-more-round-trips.sh garage base/garage target/release/garage
#
# SYSTEM is garage, minio, bob or quorum. OLD and NEW are programs of it, or bundles that
# `wanlat run` left: a base line need not be measured again at every commit.
# STUDY, SEED and OUT may be set, WANLAT names the command, and RUN_OPTIONS and COMPARE_OPTIONS go to
# `wanlat run` and `wanlat compare`. Exit codes: 0 nothing gained a round trip, 1 something did or a
# run failed, 2 wrong input, 3 the machine cannot do it.
set -euo pipefail

if [ $# -ne 3 ]; then
    echo "usage: no-more-round-trips.sh SYSTEM OLD NEW" >&2
    exit 2
fi
system=$1 old=$2 new=$3
wanlat=${WANLAT:-wanlat}
study=${STUDY:-$(dirname "$0")/round-trips-in-ci.yaml}
out=${OUT:-round-trips-$(date +%Y%m%dT%H%M%S)}
read -ra run_options <<<"${RUN_OPTIONS:-}"
read -ra compare_options <<<"${COMPARE_OPTIONS:-}"
mkdir -p "$out"

# The same seed in both runs: the same keys, in the same order.
bundle_of() {
    if [ -d "$1" ]; then
        printf '%s\n' "$1"
        return
    fi
    if [ ! -x "$1" ]; then
        echo "no-more-round-trips.sh: $1 is neither a bundle nor a program" >&2
        return 2
    fi
    env "WANLAT_${system^^}_BINARY=$(realpath "$1")" \
        "$wanlat" run "$study" --systems "$system" --seed "${SEED:-1}" --out "$out/$2" \
        "${run_options[@]}" >&2
    printf '%s\n' "$out/$2"
}

old_bundle=$(bundle_of "$old" old)
new_bundle=$(bundle_of "$new" new)
"$wanlat" compare "$old_bundle" "$new_bundle" --json "${compare_options[@]}" >"$out/comparison.json"
