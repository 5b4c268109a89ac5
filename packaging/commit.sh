#!/bin/sh
# The commit that is packed, with a plus where the tree differs from it; nothing outside a repository.
commit=$(git rev-parse HEAD 2>/dev/null) || exit 0
test -z "$(git status --porcelain)" || commit="$commit+"
echo "$commit"
