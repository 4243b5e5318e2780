#!/bin/bash
# Every stage on a machine with two GPUs (or one, given twice): one learns the codec, the other speaks and encodes the
# corpus meanwhile, and then learns the autoregressive models. A stage whose result exists is not repeated.
#   training/pipeline.sh TEACHER.pt VOICES PROMPTS.npz WORK
# Times are seconds from now: SPEAK_UNTIL ends the corpus, END ends training.
set -euo pipefail
TEACHER=$1 VOICES=$2 PROMPTS=$3 WORK=$4
uuid() { nvidia-smi --query-gpu=uuid --format=csv,noheader -i "$1"; }  # which MPS does not count anew, as it does numbers
CODEC_GPU=$(uuid "${CODEC_GPU:-0}") SPEECH_GPU=$(uuid "${SPEECH_GPU:-1}")
PROCESSES=${PROCESSES:-$(($(nproc) - 4))}
CONTINUOUS=${CONTINUOUS:-180} QUANTISED=${QUANTISED:-240} SPEAK_UNTIL=${SPEAK_UNTIL:-1050} END=${END:-1620}
export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2 TOKENIZERS_PARALLELISM=false
export CUDA_MPS_PIPE_DIRECTORY=$WORK/mps CUDA_MPS_LOG_DIRECTORY=$WORK/mps
mkdir -p "$WORK/data" "$WORK/codes" "$WORK/mps"
stage() { echo "$SECONDS s: $*" | tee -a "$WORK/stages.log"; }
on() { CUDA_VISIBLE_DEVICES=$1 python3 -m "training.$2" "${@:3}"; }
alone() { env -u CUDA_MPS_PIPE_DIRECTORY CUDA_VISIBLE_DEVICES="$1" python3 -m "training.$2" "${@:3}"; }

if [ ! -e "$WORK/codes/done" ]; then
  stage "speak with $PROCESSES processes"
  CUDA_VISIBLE_DEVICES=$SPEECH_GPU nvidia-cuda-mps-control -d  # many processes share the GPU at once
  on "$SPEECH_GPU" synthesise "$TEACHER" "$VOICES" "$PROMPTS" "$WORK/data" --processes "$PROCESSES" >"$WORK/data.log" 2>&1 &
  speaking=$!
  on "$SPEECH_GPU" encode "$WORK/data" "$WORK" --hold "$WORK/loaded" >"$WORK/encode.log" 2>&1 &
  encoding=$!
  (sleep $((SPEAK_UNTIL - SECONDS)) && touch "$WORK/data/enough") &
fi

(
  if [ ! -e "$WORK/codes.pt" ]; then
    stage "codes"
    alone "$CODEC_GPU" train_codes "$WORK/data" "$WORK" --continuous "$CONTINUOUS" --quantised "$QUANTISED" >"$WORK/codes.log" 2>&1
  fi
  stage "decoder"
  alone "$CODEC_GPU" train_decoder "$WORK/data" "$WORK" --seconds $((END - SECONDS - 60)) >>"$WORK/decoder.log" 2>&1
  stage "decoder ends"
) &
codec=$!

if [ ! -e "$WORK/codes/done" ]; then
  while kill -0 "$speaking" 2>/dev/null; do
    kill -0 "$codec" 2>/dev/null || { touch "$WORK/data/enough"; stage "the codec's stages ended early: see their logs"; exit 1; }
    sleep 2
  done
  wait "$speaking" || stage "speaking failed"
  stage "spoken"
  touch "$WORK/data/done"
  wait "$encoding" || stage "encoding failed"
  echo quit | CUDA_VISIBLE_DEVICES=$SPEECH_GPU nvidia-cuda-mps-control
fi
stage "speech"
alone "$SPEECH_GPU" train_speech "$WORK/codes" "$WORK" --seconds $((END - SECONDS - 20)) >>"$WORK/speech.log" 2>&1 || stage "speech failed"
stage "speech ends"
wait "$codec" || stage "codec failed"
stage "end"
