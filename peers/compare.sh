#!/usr/bin/env bash
# Speed of llama.cpp and OpenVINO GenAI beside this stack: the same shape with random weights, the same number of threads, by turns.
#
#     peers/compare.sh                           # Qwen3-0.6B's shape at 4 bit beside both
#     peers/compare.sh --runs 7 --threads 4
#     peers/compare.sh --gguf FILE [--gguf FILE] # GGUF files beside llama.cpp and OpenVINO, a table for each
#     peers/compare.sh --types q4_0,q4_k_m,q8_0  # the shape as GGUF files of these types, a table for each
#     peers/compare.sh --image FILE              # SmolVLM-256M's shape and an image beside llama.cpp
#
# Options: --shape NAME (of `cargo xtask bench`), --threads N [default: all], --runs N [default: 5], --image FILE, --gguf FILE,
# --types LIST (of llama-quantize). A stack that cannot be built or run is left out, with a line that says so.
#
# Needs cargo, a C++ compiler and Python with venv. pip fetches everything else into target/peers: CMake, Ninja and the source
# package of llama-cpp-python, which holds llama.cpp; OpenVINO, and without --gguf and --types what exports a model to it, or with
# --image what the converter of llama.cpp needs, either of which includes torch (6 GB). The first run builds llama.cpp, which takes minutes. `chrt -f 10` before
# the command gives the runs real-time priority.
set -euo pipefail
cd "$(dirname "$0")/.."

shape='' threads=$(nproc) runs=5 image='' types='' files=()
while [ $# -gt 0 ]; do
    case $1 in
        --shape) shape=$2 ;;
        --threads) threads=$2 ;;
        --runs) runs=$2 ;;
        --image) image=$(realpath "$2") ;;
        --gguf) files+=("$(realpath "$2")") ;;
        --types) types=$2 ;;
        *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift 2
done
[ -n "$shape" ] || { [ -n "$image" ] && shape=smolvlm-256m || shape=qwen3-0.6b; }

work=$PWD/target/peers
checkpoint=target/bench/$shape
lm=${CARGO_TARGET_DIR:-target}/release/lm
llama=$work/llama.cpp
bin=$llama/build/bin
python=$work/venv/bin/python
mkdir -p "$work"

# Installs packages of Python.
install() {
    [ -x "$python" ] || python3 -m venv "$work/venv"
    "$python" -m pip install --quiet "$@"
}

# Instruction sets of llama.cpp that this processor has, as options of CMake. The compiler's own idea of the processor (GGML_NATIVE)
# includes instructions that a virtual machine may hide.
instruction_sets() {
    local flag options=(-DGGML_NATIVE=OFF)
    for flag in $(grep -m 1 ^flags /proc/cpuinfo | cut -d : -f 2); do
        case $flag in
            sse4_2 | avx | f16c | fma | bmi2 | avx2 | avx_vnni | avx512_vbmi | avx512_vnni | avx512_bf16 | amx_tile | amx_int8 | amx_bf16)
                flag=${flag/sse4_2/sse42} options+=("-DGGML_${flag^^}=ON") ;;
            avx512bw) options+=(-DGGML_AVX512=ON) ;;
        esac
    done
    echo "${options[@]}"
}

# Builds the programs of llama.cpp that are measured.
build_llama() {
    [ ! -x "$bin/llama-bench" ] || [ ! -x "$bin/llama-quantize" ] || return 0
    install cmake ninja
    "$python" -m pip download --quiet --no-deps --no-binary llama-cpp-python --dest "$work" llama-cpp-python
    mkdir -p "$llama"
    tar --extract --gzip --file "$(ls "$work"/llama_cpp_python-*.tar.gz | tail -n 1)" --directory "$llama" \
        --strip-components 3 --wildcards '*/vendor/llama.cpp/*'
    PATH=$work/venv/bin:$PATH
    # shellcheck disable=SC2046  # each word is an option
    cmake -S "$llama" -B "$llama/build" -G Ninja -DCMAKE_BUILD_TYPE=Release $(instruction_sets) -DLLAMA_CURL=OFF \
        -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=ON > "$work/cmake.log" &&
        cmake --build "$llama/build" --target llama-bench llama-batched-bench llama-mtmd-cli llama-quantize > "$work/build.log"
}

# OpenVINO GenAI, which reads GGUF files of some types itself.
install_openvino() {
    install openvino-genai==2026.4.1.0 "$@"
}

# Exports the checkpoint to the folder $1 at 4 bit, the embedding and the head included: 4.125 bits a weight.
export_openvino() {
    install_openvino 'optimum-intel[openvino]==2.2.0' || return 1
    [ ! -d "$1" ] || return 0
    HF_HUB_OFFLINE=1 "$work/venv/bin/optimum-cli" export openvino --model "$checkpoint" --task text-generation-with-past \
        --weight-format int4 --sym --group-size 128 --all-layers --disable-convert-tokenizer "$1.part" && mv "$1.part" "$1"
}

# Writes the shape as a GGUF file of each type of `types` and adds them to `files`.
write_types() {
    local type source=$work/$shape-bf16.gguf
    [ -f "$source" ] || "$lm" convert "$checkpoint" "$source" --quantize bf16
    for type in ${types//,/ }; do
        local file=$work/$shape-$type.gguf
        [ -f "$file" ] || "$bin/llama-quantize" "$source" "$file" "${type^^}" > "$work/quantize.log" 2>&1
        files+=("$file")
    done
}

# Names the releases of the other stacks.
versions() {
    (cd "$work" && ls llama_cpp_python-*.tar.gz)
    "$python" -m pip list | grep -E '^(openvino|openvino-genai|optimum-intel|nncf|torch|transformers) '
}

# The stacks run by turns: prints a table.
turns() {
    "$python" peers/turns.py --lm "$lm" --threads "$threads" --runs "$runs" "$@"
}

# Builds `lm`, and writes the checkpoint of the shape if it is measured.
if [ ${#files[@]} -gt 0 ]; then
    cargo build --release --quiet -p lm-cli
else
    cargo xtask bench --shape "$shape" --weights bf16 --kv f16 --only dram_rate --runs 1 > /dev/null
fi
llama_options=()
if (build_llama) > "$work/llama.log" 2>&1; then
    llama_options=(--llama "$bin")
else
    echo "llama.cpp is left out, its build failed: see $work/llama.log, cmake.log and build.log" >&2
fi

if [ -n "$image" ]; then
    folder=$work/$shape
    if [ ! -f "$folder/mmproj.gguf" ]; then
        install torch transformers gguf sentencepiece
        "$python" peers/picture_files.py "$llama" "$checkpoint" "$folder"
    fi
    turns "${llama_options[@]}" --checkpoint "$checkpoint" --image "$image" --gguf "$folder/model.gguf" \
        --mmproj "$folder/mmproj.gguf"
elif [ ${#files[@]} -gt 0 ] || [ -n "$types" ]; then
    [ -z "$types" ] || write_types
    openvino=
    if install_openvino > "$work/openvino.log" 2>&1; then openvino=1; fi
    for file in "${files[@]}"; do
        printf '\n%s\n\n' "$(basename "$file")"
        turns "${llama_options[@]}" --gguf "$file" ${openvino:+--openvino "$file"}
    done
else
    file=$work/$shape-q4_0.gguf openvino=$work/$shape-openvino
    [ -f "$file" ] || "$lm" convert "$checkpoint" "$file" --quantize q4_0
    columns=()
    if export_openvino "$openvino" > "$work/openvino.log" 2>&1; then
        columns=(--openvino "$openvino")
    else
        echo "OpenVINO is left out, its export of $shape failed: see $work/openvino.log" >&2
    fi
    versions >&2 || true
    turns "${llama_options[@]}" --checkpoint "$checkpoint" --gguf "$file" "${columns[@]}"
fi
