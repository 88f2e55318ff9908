#!/bin/sh
# Installs localmed from the folder that this file lies in. Opens no network; stops at the first thing that is not right.
#
# Compare the digest of this file with what the publisher gave you on another way (sha256sum install.sh): it states
# the digests of the two files that everything else is verified by.
set -eu
umask 022
installer=@INSTALLER@
root=@ROOT@
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "install.sh: $1" >&2; exit 3; }
# Copied first, compared then, used from the copy: a stick may change its mind.
take() {
    [ -f "$1" ] && [ ! -L "$1" ] || fail "$(basename "$1") is missing: the stick is not whole. 缺少文件。"
    cp -- "$1" "$scratch/$2"
    [ "$(sha256sum < "$scratch/$2")" = "$3  -" ] || fail "$(basename "$1") is not what this file says: nothing was changed. 文件不符，未作任何更改。"
}
content=$here/content
[ -d "$content" ] || content=$here
take "$content/installer.pyz" installer.pyz "$installer"
take "$content/root.json" root.json "$root"
for python in "${LOCALMED_PYTHON:-}" python@PYTHON@ python3; do
    [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 && break
done
command -v "$python" >/dev/null 2>&1 || fail "Python @PYTHON@ is missing (Debian: python@PYTHON@-venv). 缺少Python。"
PYTHONDONTWRITEBYTECODE=1 "$python" -I "$scratch/installer.pyz" --bundle "$here" --anchor "$scratch/root.json" "$@"
