# reftest in a container, from Debian packages and PyPI alone.
#
#   docker build -t reftest .                                         CPU and CUDA kernels, torch for CUDA
#   docker build -t reftest --build-arg CUDA= .                       CPU kernels; a GPU is then not used
#   docker run --rm -v "$PWD:/dataset" reftest verify
#
# docs/getting-started.md says what a GPU and the confinement of references need.
FROM debian:12-slim AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends binutils gcc g++ libc6-dev make pkg-config \
       libcjson-dev libcurl4-openssl-dev libhiredis-dev liblmdb-dev libsodium-dev libtomlplusplus-dev libxxhash-dev \
       libzstd-dev python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*
# The CUDA compiler comes from PyPI: its five packages share one folder.
ARG CUDA=13.0
RUN python3 -m venv /opt/build \
    && if [ -n "$CUDA" ]; then /opt/build/bin/pip install --no-cache-dir "nvidia-cuda-nvcc==$CUDA.*" \
       "nvidia-cuda-runtime==$CUDA.*" "nvidia-cuda-crt==$CUDA.*" "nvidia-cuda-cccl==$CUDA.*" "nvidia-nvvm==$CUDA.*" \
       && ln -s lib "$(dirname "$(find /opt/build -path '*/bin/nvcc')")/../lib64"; fi
COPY . /src
WORKDIR /src
RUN make wheel PYTHON=/opt/build/bin/python \
    NVCC="$(find /opt/build -path '*/bin/nvcc' | head -n 1)"

FROM debian:12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git libcurl4 python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/dist/ /tmp/dist/
RUN python3 -m venv /opt/reftest \
    && /opt/reftest/bin/pip install --no-cache-dir "$(ls /tmp/dist/reftest-*.whl)[torch]" \
    && rm -rf /tmp/dist
ENV PATH=/opt/reftest/bin:$PATH
WORKDIR /dataset
ENTRYPOINT ["reftest"]
CMD ["verify"]
