#!/bin/bash
# Every stage on a machine with two GPUs or more (or one, given twice): one learns the codec, the others speak and encode
# the corpus meanwhile, and then one of them learns the autoregressive models. A stage whose result exists is not repeated.
#   training/pipeline.sh TEACHER.pt VOICES PROMPTS.npz WORK
# Times are seconds from now: SPEAK_UNTIL ends the corpus, END ends training. A run that goes on from WORK/*.pt of an
# earlier one wants other speakers: SEED. EARLIER is the folder of a run whose codebooks are gone on with. CODEC=keep goes
# on from the codec in WORK as it is: all GPUs speak, and then the autoregressive models alone learn (RATE=0.5 suits it).
set -euo pipefail
TEACHER=$1 VOICES=$2 PROMPTS=$3 WORK=$4
uuid() { nvidia-smi --query-gpu=uuid --format=csv,noheader -i "$1"; }  # which MPS does not count anew, as it does numbers
CODEC_GPU=$(uuid "${CODEC_GPU:-0}") SPEECH_GPU=$(uuid "${SPEECH_GPU:-1}")
CODEC=${CODEC:-teach}
read -ra SPEAKERS <<<"${SPEAKING_GPUS:-$([ "$CODEC" = keep ] && echo 0 1 || echo 1)}"
PARTS=${#SPEAKERS[@]}
STUDENTS=${STUDENTS:-$(($(nproc) / 3 / PARTS))}  # on each, and the teacher's processes beside them
PROCESSES=${PROCESSES:-$((($(nproc) - 4) / PARTS - STUDENTS))}
CONTINUOUS=${CONTINUOUS:-180} QUANTISED=${QUANTISED:-240} SPEAK_UNTIL=${SPEAK_UNTIL:-1050} END=${END:-1620}
export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=2 TOKENIZERS_PARALLELISM=false
mkdir -p "$WORK/data" "$WORK/codes"
stage() { echo "$SECONDS s: $*" | tee -a "$WORK/stages.log"; }
on() { CUDA_VISIBLE_DEVICES=$1 python3 -m "training.$2" "${@:3}"; }
shared() {  # many processes on one GPU at once, through the MPS server of that part
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
  [ -e "$WORK/codes.pt" ] || { stage "there is no codec to keep in $WORK: see training/resume.py"; exit 1; }
  touch "$WORK/loaded"  # nobody else reads the shards
fi
speaking=() encoding=()
if [ ! -e "$WORK/codes/done.$((PARTS - 1))" ]; then
  stage "speak on $PARTS GPUs with $PROCESSES processes each, and $STUDENTS of the student's"
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
    [ -z "$codec" ] || kill -0 "$codec" 2>/dev/null || { touch "$WORK/data/enough"; stage "the codec's stages ended early: see their logs"; exit 1; }
    sleep 2
  done
  for process in "${speaking[@]}"; do wait "$process" || stage "speaking failed"; done
  stage "spoken"
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
