#!/bin/bash
# Every stage on one GPU machine: data, codes (a), encoding, then decoder (b) and speech (c) side by side.
#   training/pipeline.sh WORK [ROOT]      WORK: results and logs; ROOT: unpacked Debian packages (default /)
# Seconds a stage, and hours of speech, come from the environment; a stage whose result exists goes on from it.
set -euo pipefail
WORK=$1 ROOT=${2:-/}
HOURS=${HOURS:-50} PROCESSES=${PROCESSES:-$(($(nproc) - 2))}
CONTINUOUS=${CONTINUOUS:-200} QUANTISED=${QUANTISED:-280} LAST=${LAST:-1000}
ROWS=${ROWS:-64} DECODER_ROWS=${DECODER_ROWS:-32} POSITIONS=${POSITIONS:-32768}
export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2 TOKENIZERS_PARALLELISM=false
mkdir -p "$WORK"
stage() { echo "$(date +%T) $1" >>"$WORK/stages.log"; }

if [ ! -f "$WORK/data/done" ]; then
  python3 -m training.synthesise "$WORK/data" --hours "$HOURS" --processes "$PROCESSES" --root "$ROOT" >"$WORK/data.log" 2>&1 &
fi
if [ ! -f "$WORK/codes.pt" ]; then
  stage "codes"
  python3 -m training.train_codes "$WORK/data" "$WORK" --continuous "$CONTINUOUS" --quantised "$QUANTISED" \
    --rows "$ROWS" --hours "$((HOURS + 2))" >"$WORK/codes.log" 2>&1
fi
wait
if [ ! -f "$WORK/speech.npz" ]; then
  stage "encode"
  python3 -m training.encode "$WORK/data" "$WORK/codes.pt" "$WORK" --hours "$((HOURS + 2))" >"$WORK/encode.log" 2>&1
fi
stage "decoder and speech"
python3 -m training.train_decoder "$WORK/data" "$WORK/codes.pt" "$WORK/speech.npz" "$WORK" --seconds "$LAST" \
  --rows "$DECODER_ROWS" --hours "$((HOURS + 2))" >"$WORK/decoder.log" 2>&1 &
decoder=$!
python3 -m training.train_speech "$WORK" "$WORK" --seconds "$LAST" --positions "$POSITIONS" >"$WORK/speech.log" 2>&1 || stage "speech failed"
wait $decoder || stage "decoder failed"
stage "end"
