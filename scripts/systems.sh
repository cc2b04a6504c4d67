#!/usr/bin/env bash
# The four systems and their ablations on Rotated MNIST (issue 3, results/): M0 and M75, 3 seeds.
#
#   scripts/systems.sh OUT [DEVICE] [STAGE...]     stages: full readings short six; default: all
#
# full      the systems and CSAC's ablations at the paper's schedule
# readings  what CSAC's paper leaves open (docs/systems.md), at the paper's schedule
# short     the ablations of PPDG, COPA and GA at the schedule "short"
# six       the systems on all six targets at the paper's schedule
#
# Resumable: what OUT holds is not run again. Each stage leaves OUT/<stage>.json and OUT/<stage>.md.
# From a checkout: PYTHON=.venv/bin/python PYTHONPATH=src scripts/systems.sh runs/systems cuda
set -euo pipefail
out=$1 device=${2:-auto} python=${PYTHON:-python}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- full readings short six
mkdir -p "$out"

csac_ablations="csac(strategy='similarity'),csac(strategy='average'),csac(distance='cosine'),csac(distance='l1'),\
csac(alignment='none'),csac(alignment='same'),csac(position=False),csac(channel=False),\
csac(position=False,channel=False),csac(label_smoothing=0.0),csac(cross_entropy=False),csac(discrepancy='mse')"
readings="csac(sides='shared'),csac(sides='shared',proj='frozen'),csac(proj='frozen'),csac(proj='renewed'),\
csac(kernels='sum'),csac(over='fused'),csac(estimator='off-diagonal'),csac(teacher='latest'),csac(per='tensor'),\
csac(layers=['block1.0','block2.0']),csac:official"
ppdg_ablations="ppdg(test_conflicts=False),ppdg(lam=0.2),ppdg(lam=0.4)"
copa_ablations="copa(norm='bn'),copa(branch='none'),copa(iterate=False),copa(norm='bn',branch='none',iterate=False),\
sequential,ind-average,ind-ensemble,copa(branch='cofc-plain'),copa(branch='augmented'),copa(branch='consistency'),\
copa(norm='in'),copa(norm='ibn-a'),copa(norm='ibn-b'),copa(norm='sn')"
ga_ablations="ga(step=0.0),ga(step=0.01),ga(step=0.01,decay=False),ga(decay=False),ga(step=0.1),\
ga(step=0.1,decay=False),ga(step=0.2),ga(step=0.2,decay=False)"
systems="fedavg,csac,ppdg,ppdg:rotated-mnist,copa,copa(geometric=False),ga"

outer=(--targets m0,m75)
failed=0

bench() { # name, methods, more options
    local name=$1 methods=$2
    shift 2
    echo "== $name: $(date +%T)"
    local command=("$python" -m feddg bench rotated-mnist --methods "$methods" --seeds 3
        --device "$device" --out "$out" "$@")
    "${command[@]}" --json >"$out/$name.json" || failed=1 # the others' numbers are there
    "${command[@]}" --markdown >"$out/$name.md" || failed=1
}

for stage in "$@"; do
    case $stage in
    full) bench full "$systems,ga+csac,ga+fedprox,$csac_ablations" "${outer[@]}" ;;
    readings) bench readings "fedavg,csac,csac(alignment='none'),$readings" "${outer[@]}" ;;
    short)
        ablations="$ppdg_ablations,$copa_ablations,$ga_ablations"
        bench short "$systems,$ablations" --schedule short "${outer[@]}"
        ;;
    six) bench six "$systems,csac(alignment='none')" ;;
    *) echo "unknown stage $stage: full, readings, short or six" >&2 && exit 2 ;;
    esac
done
exit $failed
