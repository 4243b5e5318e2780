#!/bin/bash
# Runs all stages on a machine with two GPUs or more (or one, given twice): one trains the codec while the others synthesise
# and encode the corpus; then one of them trains the autoregressive models. A stage whose result exists is not repeated.
#   training/pipeline.sh TEACHER.pt VOICES PROMPTS.npz WORK
# SPEAK_UNTIL ends the corpus and END the training, in seconds from now. A run that continues from WORK/*.pt of an earlier one
# needs another SEED, for other speakers. EARLIER: the folder of a run from whose codebooks to continue. CODEC=keep keeps the
# codec in WORK: all GPUs synthesise, then only the autoregressive models are trained (RATE=0.5 suits this).
set -euo pipefail
TEACHER=$1 VOICES=$2 PROMPTS=$3 WORK=$4
uuid() { nvidia-smi --query-gpu=uuid --format=csv,noheader -i "$1"; }  # MPS renumbers GPUs, but keeps their UUIDs
CODEC_GPU=$(uuid "${CODEC_GPU:-0}") SPEECH_GPU=$(uuid "${SPEECH_GPU:-1}")
CODEC=${CODEC:-teach}
read -ra SPEAKERS <<<"${SPEAKING_GPUS:-$([ "$CODEC" = keep ] && echo 0 1 || echo 1)}"
PARTS=${#SPEAKERS[@]}
STUDENTS=${STUDENTS:-$(($(nproc) / 3 / PARTS))}  # per GPU, in addition to the teacher's processes
PROCESSES=${PROCESSES:-$((($(nproc) - 4) / PARTS - STUDENTS))}
CONTINUOUS=${CONTINUOUS:-180} QUANTISED=${QUANTISED:-240} SPEAK_UNTIL=${SPEAK_UNTIL:-1050} END=${END:-1620}
export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2 TOKENIZERS_PARALLELISM=false
mkdir -p "$WORK/data" "$WORK/codes"
stage() { echo "$SECONDS s: $*" | tee -a "$WORK/stages.log"; }
on() { CUDA_VISIBLE_DEVICES=$1 python3 -m "training.$2" "${@:3}"; }
shared() {  # several processes on one GPU, through the MPS server of that part
  export CUDA_MPS_PIPE_DIRECTORY=$WORK/mps.$1 CUDA_MPS_LOG_DIRECTORY=$WORK/mps.$1
  CUDA_VISIBLE_DEVICES=$(uuid "${SPEAKERS[$1]}")
  export CUDA_VISIBLE_DEVICES
}
each_part() { local part; for part in $(seq 0 $((PARTS - 1))); do "$@" "$part"; done; }

serve() { (mkdir -p "$WORK/mps.$1" && shared "$1" && nvidia-cuda-mps-control -d); }
stop_serving() { (shared "$1" && echo quit | nvidia-cuda-mps-control); }
speak() {
  (shared "$1" && exec python3 -m training.teacher.synthesise "$TEACHER" "$VOICES" "$PROMPTS" "$WORK/data" \
    --seed "${SEED:-1}" --processes "$PROCESSES" --students "$STUDENTS" --part "$1" --parts "$PARTS" >"$WORK/data.$1.log" 2>&1) &
  speaking+=($!)
}
encode() {
  (shared "$1" && exec python3 -m training.data.encode "$WORK/data" "$WORK" --hold "$WORK/loaded" \
    --part "$1" --parts "$PARTS" >"$WORK/encode.$1.log" 2>&1) &
  encoding+=($!)
}

if [ "$CODEC" = keep ]; then
  [ -e "$WORK/codes.pt" ] || { stage "$WORK has no codec to keep; see training/resume.py"; exit 1; }
  touch "$WORK/loaded"  # no other stage reads the shards
fi
speaking=() encoding=()
if [ ! -e "$WORK/codes/done.$((PARTS - 1))" ]; then
  stage "synthesise on $PARTS GPUs with $PROCESSES processes each, and $STUDENTS of the student"
  each_part serve
  each_part speak
  each_part encode
  (sleep $((SPEAK_UNTIL - SECONDS)) && touch "$WORK/data/enough") &
fi

learn_codec() {
  if [ ! -e "$WORK/codes.pt" ]; then
    stage "codes"
    on "$CODEC_GPU" codec.train_codes "$WORK/data" "$WORK" --continuous "$CONTINUOUS" --quantised "$QUANTISED" \
      ${EARLIER:+--earlier "$EARLIER"} >"$WORK/codes.log" 2>&1
  fi
  stage "decoder"
  on "$CODEC_GPU" codec.train_decoder "$WORK/data" "$WORK" --gather 10 --seconds $((END - SECONDS - 60)) >>"$WORK/decoder.log" 2>&1
  stage "decoder ends"
}
codec=
if [ "$CODEC" != keep ]; then
  learn_codec &
  codec=$!
fi

if [ ${#speaking[@]} -gt 0 ]; then
  while kill -0 "${speaking[@]}" 2>/dev/null; do
    [ -z "$codec" ] || kill -0 "$codec" 2>/dev/null || { touch "$WORK/data/enough"; stage "the codec's stages ended early; see their logs"; exit 1; }
    sleep 2
  done
  for process in "${speaking[@]}"; do wait "$process" || stage "synthesis failed"; done
  stage "synthesis ends"
  finish() { touch "$WORK/data/done.$1"; }
  each_part finish
  for process in "${encoding[@]}"; do wait "$process" || stage "encoding failed"; done
  each_part stop_serving
fi
stage "speech"
on "$SPEECH_GPU" speech.train_speech "$WORK/codes" "$WORK" --seconds $((END - SECONDS - 20)) --rate "${RATE:-1}" --seed "${SEED:-1}" \
  >>"$WORK/speech.log" 2>&1 || stage "speech failed"
stage "speech ends"
[ -z "$codec" ] || wait "$codec" || stage "codec failed"
stage "end"
