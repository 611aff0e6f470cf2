# The image: dist/, production packages, and the Node of the base image; nothing else of the checkout.
# Another base (a digest, a mirror, a hardened Node 24): docker build --build-arg BASE=registry.example/node@sha256:… .
ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
# npm's copy of Node is for machines that have none: the Node of the base image compiles what it will run. No package needs a
# script of its own to be installed, so none is run here.
RUN npm ci --ignore-scripts && rm -rf node_modules/node-*-* node_modules/.bin/node
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
# The maps are for a debugger; a container has none.
RUN npm run build && find dist -name '*.map' -delete

FROM ${BASE} AS packages
WORKDIR /packages
COPY package.json package-lock.json .npmrc ./
# Optional packages are two kinds here: the compiled half of argon2, which the image needs, and a Node for machines
# that have none, which it does not. The generated API of client-node is not loaded: grantry imports two of its modules.
# What else is left out is for compilers, debuggers, other runtimes and people; licences stay.
RUN npm ci --omit=dev --ignore-scripts \
  && cd node_modules \
  && rm -rf node-*-* .bin @types @kubernetes/client-node/dist/gen \
  && find . -type f ! -iname '*licen[cs]e*' \
    '(' -name '*.ts' -o -name '*.cts' -o -name '*.mts' -o -name '*.map' -o -name '*.md' -o -name '*.bare' ')' -delete

# What Node compiles of the program at every start, kept. It counts for this very Node, this path and this user, and is
# passed over by any other.
FROM ${BASE} AS compiled
WORKDIR /app
COPY --from=packages /packages/node_modules node_modules
COPY --from=build /build/dist dist
COPY package.json ./
RUN mkdir compiled && chown 65532:65532 compiled
USER 65532:65532
RUN export NODE_COMPILE_CACHE=/app/compiled && node --use-largepages=silent dist/main.js --version \
  && node --input-type=module --eval "for (const name of ['server', 'controller']) await import('/app/dist/processes/' + name + '/' + name + '.js')" \
  && chmod -R a+rX compiled

FROM ${BASE}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="grantry" \
  org.opencontainers.image.description="OAuth 2.0 for Kubernetes: clients and signing keys are manifests, tokens are served within a second." \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/compiled
WORKDIR /app
COPY --from=packages /packages/node_modules node_modules
COPY --from=build /build/dist dist
COPY --from=compiled --chown=0:0 /app/compiled compiled
COPY package.json LICENSE ./
# Nothing here installs a program. A base that has these elsewhere on its path ends the build.
RUN rm -rf /usr/local/lib/node_modules /opt/yarn-* \
  && for tool in npm npx yarn yarnpkg corepack; do \
    rm -f "/usr/local/bin/$tool"; if command -v "$tool"; then exit 1; fi; \
  done
# A number, because from a name Kubernetes cannot verify that the user is not root.
USER 65532:65532
EXPOSE 9400 9401
# Node's own code in pages of 2 MiB, where the kernel gives them: a request costs a tenth less CPU, a process 43 MB of memory
# of its own.
ENTRYPOINT ["node", "--use-largepages=silent", "/app/dist/main.js"]
CMD ["--help"]
