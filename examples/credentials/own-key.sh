#!/bin/sh
# Gives a client of this folder a key of yours, from the root of the clone: sh examples/credentials/own-key.sh NAME
# The private part goes to .keys/NAME.jwk and .keys/NAME.pem, the public part into NAME.yaml in place of its last member, `jwks`.
set -eu
umask 077
folder=$(dirname "$0")
key=$folder/.keys/$1
mkdir -p "$folder/.keys"
public=$(npm run --silent grantry -- generate-key "$key.jwk")
node --print 'require("node:crypto").createPrivateKey({
  key: JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8")),
  format: "jwk",
}).export({ type: "pkcs8", format: "pem" }).trim()' "$key.jwk" > "$key.pem"
rest=$(sed '/^ *jwks:$/,$d' "$folder/$1.yaml")
printf '%s\n' "$rest" > "$folder/$1.yaml"
printf '%s\n' "$public" | sed 's/^/      /' >> "$folder/$1.yaml"
