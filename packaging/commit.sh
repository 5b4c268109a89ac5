#!/bin/sh
# Prints the commit that is packed, with a plus if the tree differs from the commit; prints nothing
# outside a repository.
commit=$(git rev-parse HEAD 2>/dev/null) || exit 0
test -z "$(git status --porcelain)" || commit="$commit+"
echo "$commit"
