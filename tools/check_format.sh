#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whether every C file is laid out as .clang-format says. Versions of clang-format disagree with
# each other, so only 14 is asked. With --fix, lays the files out.
set -eu
cd "$(dirname "$0")/.."

formatter=
for name in clang-format-14 clang-format; do
    if command -v "$name" >/dev/null 2>&1 && "$name" --version | grep -q 'version 14\.'; then
        formatter=$name
        break
    fi
done
if [ -z "$formatter" ]; then
    echo "skipped: no clang-format 14"
    exit 0
fi
if [ "${1:-}" = --fix ]; then
    action=-i
else
    action='--dry-run -Werror'
fi

list_files() {
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -co --exclude-standard -- '*.c' '*.h'
    else
        find . -name build -prune -o -name '*.[ch]' -print
    fi
}

list_files | while IFS= read -r file; do
    [ ! -f "$file" ] || printf '%s\0' "$file"
done | xargs -0 -r "$formatter" --style=file $action
