#!/bin/bash
# Every stage on one GPU machine. The decoder (b) starts as soon as some speech is there; the rest of the corpus
# is spoken meanwhile, encoded, and learnt by the autoregressive models (c), which share the GPU with it.
#   training/pipeline.sh WORK [ROOT]      WORK: results and logs; ROOT: unpacked Debian packages (default /)
# END: seconds from now at which training stops. A stage whose result exists is not repeated, b and c go on from theirs.
set -euo pipefail
WORK=$1 ROOT=${2:-/}
HOURS=${HOURS:-50} PROCESSES=${PROCESSES:-$(($(nproc) - 1))} EARLY=${EARLY:-60}
CONTINUOUS=${CONTINUOUS:-200} QUANTISED=${QUANTISED:-280} END=${END:-1540}
export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2 TOKENIZERS_PARALLELISM=false
mkdir -p "$WORK/data" "$WORK/early"
stage() { echo "$SECONDS s: $1" >>"$WORK/stages.log"; }
python() { python3 -m "training.$1" "${@:2}"; }

speaking=
if [ ! -f "$WORK/data/done" ]; then
  python synthesise "$WORK/data" --hours "$HOURS" --processes "$PROCESSES" --root "$ROOT" >"$WORK/data.log" 2>&1 &
  speaking=$!
fi
if [ ! -f "$WORK/codes.pt" ]; then
  stage "codes"
  python train_codes "$WORK/data" "$WORK" --continuous "$CONTINUOUS" --quantised "$QUANTISED" \
    --hours "$((HOURS + 2))" >"$WORK/codes.log" 2>&1
elif [ -n "$speaking" ]; then
  sleep "$EARLY"
fi
if [ ! -f "$WORK/early/speech.npz" ]; then
  stage "encode what is there"
  for meta in "$WORK"/data/meta_*.json; do
    name=${meta##*/meta_}
    ln -f "$meta" "$WORK"/data/audio_"${name%.json}".npy "$WORK"/data/phones_"${name%.json}".npy "$WORK/early/"
  done
  python encode "$WORK/early" "$WORK/codes.pt" "$WORK/early" --hours "$((HOURS + 2))" >"$WORK/encode.log" 2>&1
fi
stage "decoder"
python train_decoder "$WORK/early" "$WORK/codes.pt" "$WORK/early/speech.npz" "$WORK" --seconds "$((END - SECONDS))" \
  --hours "$((HOURS + 2))" >>"$WORK/decoder.log" 2>&1 &
decoder=$!
[ -z "$speaking" ] || wait "$speaking"
if [ ! -f "$WORK/speech.npz" ]; then
  stage "encode everything"
  python encode "$WORK/data" "$WORK/codes.pt" "$WORK" --hours "$((HOURS + 2))" >>"$WORK/encode.log" 2>&1
fi
stage "speech"
python train_speech "$WORK" "$WORK" --seconds "$((END - SECONDS))" >>"$WORK/speech.log" 2>&1 || stage "speech failed"
wait "$decoder" || stage "decoder failed"
stage "end"
