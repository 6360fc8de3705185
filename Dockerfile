# One image a service, from the lock of the native stack: cdc_views/stack/stack.lock and requirements.lock.
# What changes seldom comes first, so that a change of code costs the last steps only. No step needs BuildKit.

FROM debian:bookworm-slim AS base
COPY docker/ca-certificates/ /usr/local/share/ca-certificates/
# Behind a proxy that inspects TLS apt needs its certificate before there is anything to install it with.
RUN mkdir -p /etc/ssl/certs && find /usr/local/share/ca-certificates -name '*.crt' -exec cat {} + >/etc/ssl/certs/ca-certificates.crt \
 && apt-get -q update \
 && apt-get -qy install --no-install-recommends ca-certificates >/dev/null \
 && update-ca-certificates \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*

FROM base AS java
RUN apt-get -q update \
 && apt-get -qy install --no-install-recommends openjdk-17-jre-headless >/dev/null \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*

FROM java AS python
RUN apt-get -q update \
 && apt-get -qy install --no-install-recommends python3 python3-venv >/dev/null \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
ENV PATH=/opt/python/bin:$PATH \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /opt/cdc-views
COPY requirements.lock scripts/install ./
RUN python3 -m venv /opt/python \
 && UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1 ./install requirements.lock /opt/python

FROM python AS files
COPY cdc_views/__init__.py cdc_views/
COPY cdc_views/errors/ cdc_views/errors/
COPY cdc_views/host/ cdc_views/host/
COPY cdc_views/stack/__init__.py cdc_views/stack/fetch.py cdc_views/stack/folders.py cdc_views/stack/image_files.py \
     cdc_views/stack/ivy.py cdc_views/stack/java.py cdc_views/stack/pins.py cdc_views/stack/stack.lock cdc_views/stack/
RUN CDC_VIEWS_CACHE=/tmp/cache python -m cdc_views.stack.image_files /services \
 && CDC_VIEWS_CACHE=/cache python -m cdc_views.stack.fetch delta \
 && rm -rf /tmp/cache

FROM files AS settings
COPY cdc_views/ cdc_views/
RUN python -m cdc_views.stack.image_settings /settings

FROM base AS postgres
RUN useradd --system --uid 10001 --home-dir /var/lib/postgresql --create-home postgres
COPY --from=files /services/postgres /usr/lib/postgresql
COPY --from=settings /settings/postgresql.conf /settings/initdb.options /etc/cdc-views/
COPY docker/postgres/ /usr/local/bin/
USER postgres
VOLUME /var/lib/postgresql
EXPOSE 5432
STOPSIGNAL SIGINT
HEALTHCHECK --interval=3s --timeout=5s --start-period=60s CMD ["healthy"]
CMD ["start"]

FROM java AS kafka
RUN useradd --system --uid 10002 --home-dir /var/lib/kafka --create-home kafka
COPY --from=files /services/kafka /usr/share/kafka
COPY --from=settings /settings/server.properties /settings/fence.properties /settings/log4j2.properties /settings/java.options \
    /etc/cdc-views/
COPY docker/kafka/ /usr/local/bin/
ENV CLASSPATH=/usr/share/kafka/*
USER kafka
VOLUME /var/lib/kafka
EXPOSE 9092 19092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=3s --timeout=5s --start-period=60s CMD ["healthy"]
CMD ["start"]

FROM java AS connect
RUN useradd --system --uid 10003 --no-create-home connect
COPY --from=files /services/kafka /usr/share/kafka
COPY --from=files /services/plugins /usr/share/plugins
COPY --from=settings /settings/worker.properties /settings/log4j2.properties /settings/java.options /etc/cdc-views/
COPY docker/connect/ /usr/local/bin/
ENV CLASSPATH=/usr/share/kafka/*
USER connect
EXPOSE 8083
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=3s --timeout=5s --start-period=90s CMD ["healthy"]
CMD ["start"]

FROM python AS cdc-views
RUN useradd --system --uid 10004 --home-dir /project --create-home cdc_views \
 && install -d -o cdc_views -g cdc_views /warehouse /project/warehouse
COPY --from=files /cache /var/cache/cdc-views
ENV CDC_VIEWS_CACHE=/var/cache/cdc-views
# The package as an empty one first: what is installed is the command and the place to look.
COPY pyproject.toml ./
RUN mkdir cdc_views && touch cdc_views/__init__.py README.md \
 && pip install -q --no-deps --no-build-isolation --editable . && rm README.md
COPY docker/demo/ /demo/
COPY cdc_views/demo/views/ /demo/views/
COPY connectors/ connectors/
COPY cdc_views/ cdc_views/
RUN python -m compileall -q cdc_views
USER cdc_views
WORKDIR /project
VOLUME /warehouse
STOPSIGNAL SIGTERM
# Python, not a shell, is the first process, so that the signal reaches it.
HEALTHCHECK --interval=15s --timeout=30s --start-period=300s --retries=2 \
  CMD ["cdc-views", "status", "--published-within", "60"]
ENTRYPOINT ["cdc-views"]
CMD ["run"]
