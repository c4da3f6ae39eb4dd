#!/usr/bin/env bash
# Runs a command beside a Docker engine, for a machine that reaches Debian's and npm's packages but no registry of images:
#   bash test/long/support/engine.sh npm run test:long -- --project long test/long/Compose
# The engine is in a network of its own, with the image of deploy/Dockerfile and stand-ins for the images that deploy names:
# Debian with this Node, Debian's PostgreSQL and Debian's nginx. Needs root, and Debian's docker.io, docker-compose and debootstrap.
# The stand-ins have this machine's settings of apt and npm: do not publish them.
set -euo pipefail
cd "$(dirname "$0")/../../.."
folder=${DAYBOOK_ENGINE:-/var/tmp/daybook-engine}
mkdir -p "$folder/node" "$folder/postgres" "$folder/nginx"
export DOCKER_HOST=unix://$folder/docker.sock
# The clients of Debian's engine build with BuildKit, which reads deploy/Dockerfile.dockerignore.
client=/usr/bin/docker

# Starts the engine; the words before --data-root say in which network.
begin() {
  setsid "$@" --data-root "$folder/data" --exec-root "$folder/run" -p "$folder/pid" -H "$DOCKER_HOST" \
    </dev/null >"$folder/log" 2>&1 &
  until $client info >/dev/null 2>&1; do sleep 0.1; kill -0 $! || { cat "$folder/log" >&2; exit 1; }; done
}
end() { if [ -f "$folder/pid" ]; then kill "$(cat "$folder/pid")"; while [ -f "$folder/pid" ]; do sleep 0.1; done; fi; }
trap end EXIT

# Here images are built: the engine is in this machine's network, and its containers too.
begin dockerd --bridge=none --iptables=false --ip6tables=false
build() { DOCKER_BUILDKIT=1 $client build --quiet --network host "$@" >&2; }
if ! $client image inspect daybook-test/debian >/dev/null 2>&1; then
  root=$folder/root
  debootstrap --variant=minbase bookworm "$root" "$(sed -n 's/^URIs: //p' /etc/apt/sources.list.d/debian.sources | head -1)" >&2
  rm -f "$root/etc/apt/sources.list"
  cp /etc/apt/sources.list.d/*.sources "$root/etc/apt/sources.list.d/"
  apt-config dump | grep '^Acquire::Check' >"$root/etc/apt/apt.conf.d/99check" || true
  tar -C "$root" -c . | $client import - daybook-test/debian >&2
  rm -rf "$root"
fi
cp "$(node -p 'process.execPath')" "$folder/node/node"
cp /etc/ssl/certs/ca-certificates.crt "$folder/node/"
rm -rf "$folder/node/npm" && cp -rL "$(dirname "$(readlink -f "$(command -v npm)")")/.." "$folder/node/npm"
build -t node:24-bookworm-slim -f - "$folder/node" <<'DOCKERFILE'
FROM daybook-test/debian
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN for name in npm npx; do ln -s "../lib/node_modules/npm/bin/$name-cli.js" "/usr/local/bin/$name"; done \
  && chmod +x /usr/local/lib/node_modules/npm/bin/*.js && mkdir -p /usr/local/etc \
  && printf 'cafile=/etc/ssl/certs/ca-certificates.crt\nomit-lockfile-registry-resolved=true\n' >/usr/local/etc/npmrc
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
DOCKERFILE
cat >"$folder/postgres/entrypoint.sh" <<'ENTRYPOINT'
#!/bin/bash
# As the image does: the first start makes the database with a server that only the socket reaches.
set -eu
if [ "$(id -u)" = 0 ]; then
  install -d -o postgres -m 0700 "$PGDATA"
  install -d -o postgres /var/run/postgresql
  exec setpriv --reuid postgres --regid postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb -U "$POSTGRES_USER" --pwfile=<(echo "$POSTGRES_PASSWORD") --auth-local=trust --auth-host=scram-sha-256
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
  pg_ctl -w -o "-c listen_addresses=''" start
  createdb -U "$POSTGRES_USER" "${POSTGRES_DB:-$POSTGRES_USER}"
  sleep 3
  pg_ctl -w -m fast stop
fi
exec "$@" -c "listen_addresses=*"
ENTRYPOINT
build -t postgres:17 -f - "$folder/postgres" <<'DOCKERFILE'
FROM daybook-test/debian
RUN apt-get update && apt-get install -y --no-install-recommends postgresql-15 && rm -rf /var/lib/apt/lists/*
COPY --chmod=755 entrypoint.sh /usr/local/bin/
ENV PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/data
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
ENTRYPOINT ["entrypoint.sh"]
CMD ["postgres"]
DOCKERFILE
build -t nginx:1.28-alpine -f - "$folder/nginx" <<'DOCKERFILE'
FROM daybook-test/debian
RUN apt-get update && apt-get install -y --no-install-recommends nginx-light && rm -rf /var/lib/apt/lists/* \
  && rm -f /etc/nginx/sites-enabled/* && ln -sf /dev/stdout /var/log/nginx/access.log && ln -sf /dev/stderr /var/log/nginx/error.log
STOPSIGNAL SIGQUIT
CMD ["nginx", "-g", "daemon off;"]
DOCKERFILE
build -t daybook -f deploy/Dockerfile .
end

# Here services run: the engine has a network of its own, without a way out, and nothing of this machine's changes.
begin unshare --net sh -c 'ip link set lo up; exec dockerd "$@"' dockerd
DAYBOOK_NO_BUILD=1 nsenter --target "$(cat "$folder/pid")" --net "$@"
