# The image: dist/, production packages, and the Node of the base image; nothing else of the checkout.
# Another base (a mirror, a digest, a hardened Node 24): docker build --build-arg BASE=registry.example/node@sha256:… .
ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
RUN npm run build

FROM ${BASE} AS packages
WORKDIR /packages
COPY package.json package-lock.json .npmrc ./
# Optional packages are two kinds here: the compiled half of argon2, which the image needs, and a Node for machines
# that have none, which it does not.
RUN npm ci --omit=dev --ignore-scripts && rm -rf node_modules/node-*-* node_modules/.bin

FROM ${BASE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=packages /packages/node_modules node_modules
COPY --from=build /build/dist dist
COPY package.json LICENSE ./
# A number, because Kubernetes cannot tell from a name that a user is not root.
USER 65532:65532
EXPOSE 9400 9401
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["--help"]
