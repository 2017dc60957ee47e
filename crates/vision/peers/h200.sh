#!/usr/bin/env bash
# All three protocols on one GPU, three seeds, in a session of at most 25 minutes; what is left is done by the same command again.
#
# Before: build here (`cargo build --release -p didact-vision`) and carry
#   - target/release/didact-vision,
#   - data/ with mnist and fashion-mnist (43 MB as IDX and gzip; gzip the files of MNIST: 11 MB), and cifar/ in three parts, since the pictures of
#     CIFAR-10 have 139 MB and do not pack further without loss: batches 1 and 2, batches 3 and 4, batch 5 and test with the labels.
#     Carry one part per call; what was carried stays while the machine is held.
# NVRTC and cuBLAS are those of the PyTorch of that machine: their PTX must not be newer than its driver.
#
#   peers/h200.sh check            every operation against the processor, then times beside PyTorch   (2 minutes)
#   peers/h200.sh NAME SECONDS     one protocol, stopped in good order after so many seconds
#
# Tables and states go to $OUT, or to runs/vision; states come back too, so that a later call goes on (copy them to runs/vision first).
set -euo pipefail
cd "$(dirname "$0")/../../.."
program="${DIDACT_VISION:-target/release/didact-vision}"
out="${OUT:-runs}/vision"
libraries=$(python3 - <<'PY'
import glob, os, site, sys
roots = site.getsitepackages() + [site.getusersitepackages()]
found = {os.path.dirname(f) for r in roots for f in glob.glob(os.path.join(r, "nvidia", "**", "lib*.so*"), recursive=True)}
print(":".join(sorted(found)))
PY
)
export LD_LIBRARY_PATH="$libraries:${LD_LIBRARY_PATH:-}:/usr/local/cuda/lib64"
mkdir -p "$out"
case "${1:?check, or the name of a protocol}" in
check)
    "$program" check-device | tee "$out/check-device.txt"
    # In turns, so that both meet the same machine.
    for _ in 1 2; do
        "$program" bench --models 1,3,8 | tee -a "$out/bench.jsonl"
        python3 crates/vision/peers/vit.py bench --precision tf32 | tee -a "$out/bench.jsonl"
    done
    ;;
*)
    status=0
    timeout --signal=INT "${2:?seconds}" "$program" run "$1" --seeds 3 --data data --out "$out" --device cuda || status=$?
    # 124 and 130: stopped in good order; the state is there.
    [ "$status" = 0 ] || [ "$status" = 124 ] || [ "$status" = 130 ]
    ls -l "$out/$1"
    ;;
esac
