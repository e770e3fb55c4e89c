# The package in an image. CPU:   docker build -t optimist .
#                         CUDA:  docker build -t optimist:cuda --build-arg EXTRAS=cuda12,all .
# STORES has the packages of object stores, for studies at s3:// or gs://:  --build-arg STORES="s3fs gcsfs"
# The CUDA libraries come with the Python packages; the host needs NVIDIA's driver and container toolkit.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY docs/publishing/metadata.py ./docs/publishing/
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
ARG EXTRAS=all
ARG STORES=s3fs
COPY --from=build /wheels /wheels
COPY constraints.txt /tmp/constraints.txt
RUN wheel="$(echo /wheels/*.whl)" \
    && pip install --no-cache-dir "${wheel}[${EXTRAS}]" ${STORES} -c /tmp/constraints.txt \
    && rm -r /wheels /tmp/constraints.txt \
    && useradd --create-home --uid 1000 optimist
USER 1000
WORKDIR /home/optimist
ENTRYPOINT ["optimist"]
CMD ["doctor"]
